"""What stands in a package for modules that are mocked out."""

SOURCE = '''"""Objects of modules that are not in this package: they can be named, and no more."""

_made = False


class MockedObject:
    """Stands for an object that is not there, and says so when it is used."""

    def __new__(cls, *arguments, **words):
        if not words.get("_suppress_err"):
            raise NotImplementedError(
                f"Object '{cls._name}' was mocked out during packaging "
                f"but it is being used in {cls.__name__}"
            )
        return super().__new__(cls)

    def __init__(self, name, _suppress_err=False):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"

    __str__ = __repr__


def _refusing(method):
    def refuse(self, *arguments, **words):
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging "
            f"but it is being used in {method}"
        )

    return refuse


for _method in (
    "abs add aenter aexit aiter and anext await bool bytes call ceil complex contains delattr "
    "delete delitem divmod enter eq exit float floor floordiv format ge get getattr getitem gt "
    "hash iadd iand ifloordiv ilshift imatmul imod imul index instancecheck int invert ior ipow "
    "irshift isub iter itruediv ixor le len length_hint lshift lt matmul missing mod mul ne neg "
    "next or pos pow radd rand rdivmod reversed rfloordiv rlshift rmatmul rmod rmul ror round "
    "rpow rrshift rshift rsub rtruediv rxor set set_name setattr setitem sub subclasscheck "
    "truediv trunc xor"
).split():
    setattr(MockedObject, f"__{_method}__", _refusing(f"__{_method}__"))
'''
"""The module `_mock` of a package, which is written once."""

MODULE = """from _mock import MockedObject


def __getattr__(attr: str):
    return MockedObject(__name__ + "." + attr, _suppress_err=True)
"""
"""A module that is mocked out."""

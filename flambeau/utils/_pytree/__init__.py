"""`torch.utils._pytree`: nested containers as a list of leaves and a spec of what was around them.

`nodes` holds what is known of each kind of container, `spec` the specs, `functions` what maps over
trees, `paths` where leaves are, `text` specs as JSON.
"""

from __future__ import annotations

from typing import Any

from flambeau.utils._pytree.functions import (
    arg_tree_leaves,
    map_only,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
)
from flambeau.utils._pytree.keys import (
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    SequenceKey,
)
from flambeau.utils._pytree.nodes import (
    BUILTIN_TYPES,
    CONSTANT_NODES,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    ConstantNode,
    NodeDef,
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _deregister_pytree_node,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _odict_flatten,
    _odict_unflatten,
    _ordereddict_flatten,
    _ordereddict_flatten_with_keys,
    _ordereddict_unflatten,
    _private_register_pytree_node,
    _register_pytree_node,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from flambeau.utils._pytree.paths import (
    key_get,
    keystr,
    tree_flatten_with_path,
    tree_leaves_with_path,
    tree_map_with_path,
)
from flambeau.utils._pytree.spec import (
    LeafSpec,
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_structure,
    tree_unflatten,
    treespec_dict,
    treespec_leaf,
    treespec_pprint,
    treespec_tuple,
)
from flambeau.utils._pytree.text import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
    _register_namedtuple,
    pytree_to_str,
    str_to_pytree,
    treespec_dumps,
    treespec_loads,
)
from flambeau.utils._pytree.types import (
    Context,
    DumpableContext,
    FlattenFn,
    FlattenFunc,
    FlattenWithKeysFn,
    FlattenWithKeysFunc,
    FromDumpableContextFn,
    PyTree,
    ToDumpableContextFn,
    UnflattenFn,
    UnflattenFunc,
)

PyTreeSpec = TreeSpec

__all__ = [
    "PyTree", "Context", "FlattenFn", "UnflattenFn", "DumpableContext", "ToDumpableContextFn",
    "FromDumpableContextFn", "PyTreeSpec", "TreeSpec", "LeafSpec", "keystr", "key_get",
    "register_pytree_node", "tree_is_leaf", "tree_flatten", "tree_flatten_with_path",
    "tree_unflatten", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_structure",
    "tree_map", "tree_map_with_path", "tree_map_", "tree_map_only", "tree_map_only_", "tree_all",
    "tree_any", "tree_all_only", "tree_any_only", "treespec_dumps", "treespec_loads",
    "treespec_pprint", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance",
]  # fmt: skip

# Users see the classes here, not in the files that hold them.
for _class in (TreeSpec, LeafSpec, NodeDef, ConstantNode, KeyEntry, SequenceKey, MappingKey,
               GetAttrKey):  # fmt: skip
    _class.__module__ = __name__

"""Explained differences of drawn calls of single functions, methods and classes."""

from __future__ import annotations

from conformance.explanation import Explained

CALLS = (
    Explained(
        "Nothing in place of sizes (`x.unflatten(0, None)`)",
        "RuntimeError: they must be non-empty",
        "TypeError: they must be a tuple of ints",
        group=r"^raises TypeError for RuntimeError \| .*unflatten",
        detail="sizes must be non-empty",
    ),
    Explained(
        "`out=` in methods (`x.add(y, out=z)`)",
        "a TypeError: functions alone take it",
        "works, as in the function",
        group=r"^does not raise TypeError \| \.|for TypeError \| \.|words of an error \| \.",
        case=r"out=x\d",
    ),
    Explained(
        "`out=` that is an operand and has to be resized, or is written to while it is read",
        "computes with what it has overwritten",
        "computes, then writes",
        group="^(values|shape|stride|does not raise (Runtime|Index)Error)",
        case=r"\br = .*\b(x\d+)\b.*out=\1\b",
    ),
    Explained(
        "Vectors of `svd`, `eig`, `eigh` and low-rank ones, up to a sign or within equal values",
        "those of its LAPACK",
        "those of ours",
        group=r"^values.*\.(svd|eig|eigh|svd_lowrank|pca_lowrank)$",
    ),
    Explained(
        "Other decompositions of numbers that overflow or are not finite, `lstsq` with a `rcond` "
        "that leaves no rank",
        "what its LAPACK leaves behind",
        "what ours does",
        group=r"^values.*(eigvals|lstsq|geqrf|qr|cholesky\w*)$",
        case="large|special|rcond",
    ),
    Explained(
        "Which of several equal elements `kthvalue` names, and what `mode` finds among NaN",
        "as its selection leaves them",
        "by position; NaN are last",
        group=r"^values.*(kthvalue|mode)$",
    ),
    Explained(
        "`matrix_exp` of halves",
        "rounds after each product",
        "rounds once",
        group=r"^values.*matrix_exp$",
        case="float16",
    ),
    Explained(
        "Sums of products that overflow, or infinities among what is added (fft, inner, cross, "
        "`layer_norm`, similarities)",
        "inf or NaN, by the order of its sums",
        "inf or NaN, by the order of ours",
        group=r"^values.*(fft\w*|inner|cross|layer_norm|similarity|cholesky_inverse)$",
        case="large|special",
    ),
    Explained(
        "Arguments of a wrong type that functions use before they look at it",
        "TypeError: argument 'p' must be float, not list",
        "TypeError: what Python says of the first use ('<' not supported between ...)",
        group="^words of an error",
        detail="for .the arguments do not fit.",
    ),
    Explained(
        "Arguments of a wrong type beside another mistake, and lists of which a later element is "
        "wrong, in functions made of others",
        "the type: its parser looks at all of them first",
        "the mistake that the function meets first",
        group=r"^raises \w+ for TypeError",
        detail="for TypeError: the arguments do not fit",
    ),
    Explained(
        "What is no tensor, given to functions that PyTorch writes in Python",
        "TypeError, AttributeError or ValueError, by what they do first with it",
        "the same, by what ours do first",
        group=r"^raises (Type|Attribute|Value)Error for|^words of an error",
        detail=r"has no attribute|not callable|not iterable|unhashable|ambiguous|no len\(\)|"
        r"not supported between|concatenate str|unsupported operand|unary -",
    ),
    Explained(
        "Arguments that PyTorch cannot differentiate by and that require grad, beside another "
        "mistake",
        "says so before anything else",
        "the other mistake",
        detail="is not differentiable with respect to argument",
    ),
    Explained(
        "A type without a kernel, beside another mistake",
        "the kernel's refusal, before or after shapes are looked at",
        "the same refusal, at another place",
        group=r"^raises \w+ for \w+|^words of an error",
        detail="not implemented for|backend. This could be because|is not supported for complex",
    ),
    Explained(
        "Too few dims for what a function does",
        "IndexError of the size that it asks for first",
        "the same, or the words about the number of dims",
        group=r"^raises \w+ for \w+|^words of an error",
        detail=r"Dimension (out of range|specified)|out of range|index out of range|"
        r"not enough values|too many values",
    ),
    Explained(
        "A number in the place of the first tensor, by name",
        "is called `self`",
        "is called `input`, as the tensor",
        group="TypeError",
        case=r"[(,] ?self=|input=(-?\d|float|True|False)",
    ),
    Explained(
        "Earlier forms (`add(x, 2, y)`) with some of the arguments by name",
        "taken, with the warning",
        "refused; by position they are taken, with the warning",
        group=r"^raises TypeError.*(add|sub|subtract|addcmul|addcdiv|addmm|addmv|addr|baddbmm|"
        r"addbmm)_?$",
        case=r"(tensor2|other|mat|mat2|vec|vec2|batch2)=",
        detail="^TypeError: the arguments do not fit",
    ),
    Explained(
        "Types that an operator has no code for: `pdist`, `cdist`, `local_response_norm`, "
        "`histogram`, `histogramdd`, `multilabel_margin_loss`, `multi_margin_loss`, "
        "`special.round`, `rfftfreq` of halves, integers and complex numbers",
        "NotImplementedError",
        "works",
        group=r"^does not raise NotImplementedError.*(pdist|cdist|local_response_norm|round|"
        r"fftfreq|histogram|histogramdd|multi(label)?_margin_loss)$",
        detail="not implemented for",
    ),
    Explained(
        "In-place sums of products (`addr_`, `addmm_`) whose result has another shape",
        "the words of the check of its sizes",
        "the words of the write that fails",
        group=r"^words of an error \| (torch)?\.add(r|mm|mv|bmm)_$",
    ),
    Explained(
        "`out=` of `fftfreq` and `rfftfreq` in another shape of as many elements",
        "keeps its shape",
        "is resized to one dim",
        group=r"^shape \| torch\.fft\.r?fftfreq",
        case="out=",
    ),
    Explained(
        "`out=` in forms that have none (`argsort(x, out=z)`, `remainder(2, x, out=z)`, "
        "`var(x, False, out=z)`)",
        "TypeError",
        "works, as in the form beside it",
        group="^does not raise TypeError",
        case=r"out=x\d",
    ),
    Explained(
        "`out=` that does not fit, beside another mistake",
        "one of both",
        "the other",
        group=r"^raises \w+ for \w+|^words of an error",
        case=r"out=x\d",
        detail=r"out=|output|Expected out|written-to tensor|broadcast shape|in-place operation|"
        "Bad in-place|refer to a single memory",
    ),
    Explained(
        "How a message names a type (`Long`, `long int`, `torch.int64`), a list or a tensor",
        "in one of several ways",
        "in one of them",
        group="^words of an error",
        detail=r"c10::|long int|signed char|unsigned char|CPU\w+Type|padding_mode must be one of|"
        r"requested resize to|"
        r"TensorOptions|output_size .\[|Got size \(",
    ),
    Explained(
        "Calls over tensors without elements",
        "are answered before all arguments are looked at",
        "look at all arguments",
        group=r"^raises \w+ \|",
        case=r"make\(\d+, \((\d+, )*0\b",
    ),
    Explained(
        "Parameters of layers without input channels or of a kernel of size 0; margin losses over "
        "no rows",
        "memory that nobody has written to",
        "zeros, or NaN as the mean of nothing",
        group=r"^values \| torch\.nn\.(Conv|functional\.multi)",
    ),
    Explained(
        "`SyncBatchNorm(process_group=...)`",
        "takes anything until it is used",
        "refuses what it does not have",
        detail="process groups",
    ),
    Explained(
        "`unpad_sequence(padded, lengths)` with `batch_first=False`",
        "transposes the caller's tensor in place",
        "leaves it as it is",
        group="unpad_sequence",
    ),
    Explained(
        "Strides of tensors without elements that come from NumPy",
        "those of the array",
        "row-major ones",
        group=r"^other value \| \.stride",
    ),
    Explained(
        "The history of what `pad_sequence` and `vander` give",
        "writes rows into new memory",
        "stacks them",
        group=r"^name \| torch\.(nn\.utils\.rnn\.pad_sequence|vander)$",
    ),
    Explained(
        "Windows where they are 0",
        "what rounding in single precision leaves",
        "what rounding in double precision leaves",
        group=r"^values \| torch\.(signal\.windows|\w+_window)",
    ),
    Explained(
        "`searchsorted` and `bucketize` among numbers that are not in order",
        "as its search goes",
        "as ours goes",
        group="^values.*(searchsorted|bucketize)",
    ),
    Explained(
        "Inverses and determinants of matrices with infinities, NaN, or numbers of very different "
        "size",
        "what its LAPACK leaves behind",
        "what ours does",
        group=r"^values.*(inverse|inv|inv_ex|slogdet|logdet|det|solve\w*|pinv|cond|matrix_rank)$",
        case="large|special",
    ),
    Explained(
        "Order of eigenvalues; `lstsq` with a `rcond` of 1 and more",
        "its LAPACK's; no rank is left",
        "ours; no rank is left",
        group=r"^values.*(eigvals|lstsq)$",
    ),
    Explained(
        "Which of several equal elements `topk` names, and its order with `sorted=False`",
        "as its selection leaves them",
        "by position, in order",
        group="^values.*topk$",
    ),
    Explained(
        "Special functions of very large and very small numbers, in single precision",
        "where its approximation ends",
        "where ours ends",
        group=r"^values.*(bessel|igamma|polygamma|polynomial|airy|zeta|gamma|erf|digamma)",
        case=r"^(?!.*(float64|complex128)).*(float32|float16|int|bool|uint)",
    ),
    Explained(
        "In double precision: `igammac` of orders near 0 (1e-30), `zeta(1e30, 2.5)`, `bessel_j` of "
        "huge numbers, `polygamma` at poles, polynomials that overflow",
        "off by a factor, NaN, or a number of its approximation",
        "a E1(x), 0, as far as the argument is known, infinite, as the recurrence goes",
        group=r"^values.*(bessel_[jy]|igammac|polygamma|polynomial|zeta)",
        case=r"(large|special|tiny)",
    ),
    Explained(
        "Distances of order 0, below 1e-3, infinite or NaN between numbers that are not finite or "
        "overflow",
        "drops NaN from maxima; takes a single element without its power",
        "NaN stays; powers overflow",
        group=r"^values.*(dist)$",
        case=r"(large|special|inf|nan|1e-)",
    ),
    Explained(
        "Norms and histograms that overflow",
        "computes a single element without its powers; any counts",
        "infinite; any counts",
        group=r"^values.*(norm|histc|histogram|histogramdd)$",
    ),
    Explained(
        "Variances of numbers whose squares overflow",
        "infinite: sums squares in single precision",
        "finite where the result is",
        group=r"^values.*\b(std|var|std_mean|var_mean)$",
        case="large",
    ),
    Explained(
        "Parameters of activations and distances that are infinite or NaN",
        "as its formula goes",
        "as ours goes",
        group=r"^values.*(elu_?|celu_?|cdist|normalize|softplus|poisson|cov)$",
    ),
    Explained(
        "Arguments of a wrong type that nothing stumbles over (`equal_nan=[]`, `training=2**70`, "
        "`np.bool_`, `as_strided(x, b'a', [0])`, `dropout(2, train=False)`)",
        "TypeError, or another form of the result",
        "are taken for what they can be read as; types are looked at when something fails: looking "
        "at each would cost every call",
        group=r"^does not raise TypeError|^other value \| \.lu$",
        case=r"^(?!.*nope=)(?!.*\(\)\n?$).*(np\.|tensor\(|Size\(|\{\}|\[|= *\(|, \(|\(\(|True|"
        r"False|\d\.\d|e-\d|'a'|b'|2\*\*70|axis=|_format|channels_last|array\(|split\()",
    ),
    Explained(
        "Overflowing integers (`2**70`) beside another mistake",
        "ValueError: Overflow when unpacking long long, before anything else",
        "the mistake that the function meets first",
        group=r"^raises \w+ for ValueError",
        case=r"2\*\*70",
        detail="Overflow when unpacking",
    ),
    Explained(
        "A list as `num_features` of `BatchNorm1d`, beside a type without gradients",
        "the type",
        "the list",
        group=r"^raises TypeError for RuntimeError \| torch\.nn\.\w*Norm",
        case=r"Norm\w*\((num_features=)?\[",
        detail="can require gradients",
    ),
    Explained(
        "`pixel_unshuffle` of nothing",
        "has the shape of its input",
        "the shape that the factor asks for",
        group=r"^shape .*pixel_unshuffle",
        case=r"\[?(\d+, )*0\b",
    ),
    Explained(
        "`cov` of a type with weights of another",
        "RuntimeError, or float32 for integers with halves",
        "the type that both promote to",
        group=r"^(dtype|does not raise RuntimeError).*\.cov$",
        case="weights=",
    ),
    Explained(
        "`tensor_split(sections=tensor([1]))`, a tensor of one element in the name of a number",
        "that number of pieces",
        "an index, as without the name",
        group=r"tensor_split$",
        case=r"sections=torch\.tensor\(\[",
    ),
    Explained(
        "Which of two wrong options `LinearCrossEntropyOptions` names",
        "by its order of checks",
        "by ours",
        group="^words of an error.*LinearCrossEntropyOptions",
    ),
    Explained(
        "In-place forms of what PyTorch composes (`ldexp_`, `mvlgamma_`) of integers",
        "name the operator, or the cast the other way round",
        "name the cast",
        group=r"^words of an error.*(ldexp_|mvlgamma_)$",
        detail="can't be cast to the desired output type",
    ),
    Explained(
        "NumPy's arrays as operands of functions and methods (`x.bitwise_xor(array)`)",
        "TypeError; operators take them",
        "are taken, as by operators",
        group="^does not raise TypeError",
        case=r"array\(",
    ),
    Explained(
        "`np.bool_` and `np.complex64` scalars beside a tensor, in what an operator makes of them",
        "floats: types become float32, imaginary parts are dropped",
        "the numbers they are",
        group=r"^(values|dtype|raises NotImplementedError|does not raise)",
        case=r"np\.(bool_|complex64)\(",
    ),
    Explained(
        "`np.complex64` and `np.bool_` scalars for real parameters (`leaky_relu(x, "
        "np.complex64(1j))`, `trapezoid(y, dx=np.bool_(True))`)",
        "are taken for floats: real parts, 1.0",
        "RuntimeError, as Python's complex numbers and bools",
        group=r"^raises RuntimeError",
        case=r"np\.(complex64|bool_)\(",
        detail="value cannot be converted to type|result type Complex|dx as a real number",
    ),
    Explained(
        "`linalg.tensorsolve` of more dims on the right than on the left",
        "an error of its memory: cannot create std::vector larger than max_size()",
        "what has to be equal",
        group="^words of an error.*tensorsolve$",
        detail="std::vector larger",
    ),
    Explained(
        "`stft` and `lu`, whose first steps PyTorch writes in Python: an argument of a wrong type "
        "beside another mistake",
        "the other mistake",
        "the type",
        group=r"^raises TypeError for RuntimeError.*\.(stft|lu)$",
        detail="align_to_window should only be set|Expected tensor with 2 or more dimensions",
    ),
    Explained(
        "`as_strided` with a negative size beside one of 0",
        "a tensor with a negative size",
        "RuntimeError",
        group=r"as_strided(_\w+)?$",
        detail="Storage size calculation overflowed",
    ),
    Explained(
        "`lerp` of numbers whose product overflows",
        "one instruction for product and sum: the sum",
        "infinite",
        group=r"^values.*lerp_?$",
        case="large",
    ),
    Explained(
        "`matrix_exp` of large numbers",
        "the unit matrix, once its norm is infinite",
        "infinite",
        group=r"^values.*matrix_exp$",
        case="large",
    ),
    Explained(
        "Complex numbers as `alpha` and `beta` of products of real matrices",
        "RuntimeError: value cannot be converted",
        "TypeError",
        group=r"^raises TypeError for RuntimeError.*add(mm|mv|bmm|r)_?$|baddbmm_?$",
        detail="value cannot be converted to type",
    ),
    Explained(
        "Sizes that do not fit, in `rsub` and `binary_cross_entropy_with_logits`",
        "in the order in which its formula has them",
        "in the order of the arguments",
        group=r"^words of an error.*(rsub|binary_cross_entropy_with_logits)$",
        detail="must match the size of tensor",
    ),
    Explained(
        "`fractional_max_pool2d(output_ratio=0.5)`, a number for both dims",
        "TypeError: object of type 'float' has no len(), but of volumes",
        "that ratio for each dim",
        group=r"(Error|values).*fractional_max_pool2d\w*$",
        detail=r"object of type 'float' has no len",
    ),
    Explained(
        "`x.to(0.5)`, a number as another tensor",
        "a copy of float64",
        "TypeError",
        group=r"^raises TypeError \| \.to$",
    ),
    Explained(
        "`pairwise_distance` and `triplet_margin_loss` of integers whose `eps` is one",
        "a distance in float32",
        "RuntimeError, as other norms of integers",
        group=r"^raises RuntimeError.*(pairwise_distance|triplet_margin_loss)$",
        detail="linalg.vector_norm: Expected a floating point",
    ),
    Explained(
        "Where an empty view at the end of its memory begins, for `as_strided`",
        "at the end: RuntimeError",
        "at the start",
        group=r"^does not raise RuntimeError.*as_strided_?$",
        case=r"make\(\d+, \((\d+, )*0",
        detail="setStorage",
    ),
    Explained(
        "Large matrices that rounding makes singular, or not (`inverse`, `ldl_factor`)",
        "as its LAPACK rounds",
        "as ours rounds",
        group=r"^(raises|does not raise) _LinAlgError.*(inverse|inv|ldl_factor(_ex)?)$",
        case="large|special",
    ),
    Explained(
        "A device that there is not, beside another mistake",
        "says so before anything else, but for windows of `torch.signal`",
        "one of both",
        group=r"^(raises \w+ for \w+|words of an error) \| (torch)?\.\w*(_like|full|empty\w*|zeros|"
        r"ones|space|range|arange|eye|indices|window|signal.*|rand\w*|tensor)$",
        case=r"meta2|device=\S*\d",
        detail=r" for (\w+: )?['\"]*(Invalid device string|Cannot access accelerator device)|"
        r"signal|general_",
    ),
    Explained(
        "Weights of `native_batch_norm` of more elements than there are channels",
        "reads as many as it needs (and past the end of shorter ones)",
        "RuntimeError",
        group="(raises RuntimeError|words of an error).*native_batch_norm",
        detail="should contain",
    ),
    Explained(
        "`output_padding` of a convolution that is not transposed",
        "RuntimeError where it is negative, or of another length",
        "is not looked at",
        group=r"^does not raise RuntimeError.*\bconvolution$",
        detail="output_padding",
    ),
    Explained(
        "Fourier transforms that MKL has no configuration for",
        "RuntimeError: MKL FFT error",
        "the transform",
        group=r"^does not raise RuntimeError.*fft",
        detail="MKL FFT error",
    ),
    Explained(
        "`x.resize([2, 3])`, a list as one argument",
        "RuntimeError: it compares the list with the number of elements",
        "as `x.resize(2, 3)`",
        group=r"^does not raise RuntimeError \| \.resize$",
    ),
    Explained(
        "`masked_scatter_` with too few values",
        "has written some of them when it says so",
        "writes nothing",
        group=r"^values.*masked_scatter_$",
    ),
    Explained(
        "How a message shows a tensor (`meshgrid`)",
        "as C++ prints it",
        "as Python does",
        group="^words of an error.*meshgrid",
    ),
    Explained(
        "Products of halves that underflow",
        "0",
        "the smallest number",
        group=r"^values.*\bprod$",
        case="float16",
    ),
    Explained(
        "`out=` whose elements share memory, in `histc`, `narrow_copy`, `matrix_rank`, variances, "
        "`vecdot` and `matmul` of halves; `triu_`, `tril_` and `baddbmm_` of such memory",
        "is written to, one element over the other",
        "RuntimeError, as in the other functions",
        group=r"^raises RuntimeError.*(histc|narrow_copy|matmul|vecdot|matrix_rank|var|std|"
        r"tri[ul]_|baddbmm_)$",
        detail="more than one element of the written-to tensor",
    ),
    Explained(
        "`fft.ihfftn(x, dim=d, out=...)` over a single dim",
        "leaves `out` as it was",
        "writes to it",
        group=r"^(shape|values|stride).*ihfft(n|2)$",
        case="out=",
    ),
    Explained(
        "`cholesky_inverse` of a complex factor whose diagonal is not real",
        "as LAPACK: the imaginary parts there are not read",
        "the inverse of the product",
        group=r"^values.*cholesky_inverse$",
        case="complex",
    ),
    Explained(
        "`ldl_factor` of matrices that are not finite",
        "what its LAPACK leaves behind",
        "LinAlgError",
        group="^raises _LinAlgError.*ldl_factor$",
        case="special",
    ),
    Explained(
        "`soft_margin_loss` of complex numbers",
        "a complex loss",
        "NotImplementedError",
        group=r"^raises NotImplementedError.*soft_margin_loss$",
        case="complex",
    ),
    Explained(
        "`normal(mean, out=y)` without a deviation",
        "draws in the shape of `y`, to which the means are broadcast",
        "in the shape of the means, as with a deviation",
        group=r"^(does not raise RuntimeError|shape|values).*\bnormal$",
        case="out=",
    ),
    Explained(
        "A list as `num_features` of a normalisation, a wrong `device` or `dtype` for a layer "
        "without parameters",
        "work: nothing looks at them",
        "TypeError",
        group=r"^raises (Type|Runtime)Error \| torch\.nn\.\w*Norm",
        case=r"num_features=\[|elementwise_affine=False|affine=False",
    ),
    Explained(
        "A sum of gradients for `scatter_reduce` whose values have another size than the index",
        '"returned an invalid gradient"',
        "the words of the sum that fails",
        group="^words of an error.*scatter_reduce$",
        detail="is not expandable",
    ),
    Explained(
        "Warnings of a call that fails, and of types that a call goes through inside",
        "as far as it has come",
        "as far as ours has come",
        group="^warnings",
    ),
)

"""gather_nd and gather in NumPy: what tslice's results are held against.

TensorFlow's GatherNd and GatherV2 on CPU, but that tuples of no numbers, 0-d params and slabs of
no elements are taken too; and NumPy's take modes. `fixtures/gather.py` holds these two functions
against TensorFlow itself.
"""

import numpy as np


class Misfit(Exception):
    """Shapes, an axis or batch dims that do not go together."""


class Bad(Exception):
    """An index out of range; the message names the first, the hint the flag that may be meant."""

    def __init__(self, message, hint):
        super().__init__(message)
        self.hint = hint


ALONG = "--axis 0 takes each number as a position on the first axis"
NEGATIVE = "--negative counts negative indices from the end, as np.take does"


def hint(values, lens, flat):
    if flat and all(0 <= value < (lens[0] if lens else 0) for value in values):
        return ALONG
    from_the_end = all(-length <= value < length for value, length in zip(values, lens))
    return NEGATIVE if from_the_end else None


def settle(indices, lens, mode, words, negative=False):
    """Positions for indices whose last axis indexes axes of `lens`, and which tuples are good.

    `negative` counts -1 to -length from the end first, as np.take and ONNX do.
    """
    # exact for any 64-bit value
    numbers = indices.astype(object)
    good = np.ones(indices.shape[:-1], bool)
    for column, length in enumerate(lens):
        part = numbers[..., column]
        if negative:
            part = np.where((part < 0) & (part >= -length), part + length, part)
            numbers[..., column] = part
        if mode in ("clip", "wrap"):
            if length == 0 and part.size:
                raise Misfit("nothing to clip or wrap to")
            part = np.clip(part, 0, max(length - 1, 0)) if mode == "clip" else part % max(length, 1)
            numbers[..., column] = part
        else:
            good &= np.asarray((part >= 0) & (part < length), bool)
    if mode == "error" and not good.all():
        at = np.unravel_index(int(np.argmin(good)), good.shape) if good.ndim else ()
        raise Bad(*words(tuple(int(i) for i in at)))
    return np.where(good[..., None], numbers, 0).astype(np.int64), good


def bad_count(indices, shape, axis, batch_dims):
    """How many positions are out of range."""
    if axis is None:
        lens = shape[batch_dims : batch_dims + indices.shape[-1]]
        return int((~settle(indices, lens, "zero", None)[1]).sum())
    return int((~settle(indices[..., None], [shape[axis]], "zero", None)[1]).sum())


def place(at):
    return f"indices[{','.join(map(str, at))}]" if at else "indices"


def gather_nd(params, indices, batch_dims=0, mode="error", negative=False):
    if indices.ndim == 0 or batch_dims > max(min(indices.ndim, params.ndim) - 1, 0):
        raise Misfit("axes")
    count = indices.shape[-1]
    if params.shape[:batch_dims] != indices.shape[:batch_dims] or batch_dims + count > params.ndim:
        raise Misfit("shapes")
    shape = indices.shape[:-1]

    def words(at):
        values = [*at[:batch_dims], *(int(value) for value in indices[at])]
        message = f"{place(at)} = {values} does not index into params of shape {list(params.shape)}"
        return message, hint(values, params.shape, not at)

    lens = params.shape[batch_dims : batch_dims + count]
    positions, good = settle(indices, lens, mode, words, negative)
    result = np.zeros(shape + params.shape[batch_dims + count :], params.dtype)
    for at in zip(*(axis.tolist() for axis in np.nonzero(good))) if good.ndim else [()] * bool(good):
        result[at] = params[(*at[:batch_dims], *positions[at].tolist())]
    return result


def gather(params, indices, axis, batch_dims=0, mode="error", negative=False):
    if not -params.ndim <= axis < params.ndim:
        raise Misfit("axis")
    axis %= params.ndim
    if batch_dims < 0:
        batch_dims += indices.ndim
        if batch_dims < 0:
            raise Misfit("batch dims")
    if batch_dims > axis or batch_dims > indices.ndim:
        raise Misfit("batch dims")
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise Misfit("shapes")
    length = params.shape[axis]

    def words(at):
        value = int(indices[at])
        message = f"{place(at)} = {value} is not in [{-length if negative else 0}, {length})"
        return message, hint([value], [length], False)

    positions, good = settle(indices[..., None], [length], mode, words, negative)
    positions = positions[..., 0]
    outer, inner = params.shape[batch_dims:axis], params.shape[axis + 1 :]
    shape = params.shape[:batch_dims] + outer + indices.shape[batch_dims:] + inner
    result = np.zeros(shape, params.dtype)
    if result.size and length:
        for batch in np.ndindex(params.shape[:batch_dims]):
            taken = np.array(np.take(params[batch], positions[batch], axis=axis - batch_dims))
            lead = (slice(None),) * len(outer)
            taken[(*lead, ~good[batch])] = np.zeros((), params.dtype)
            result[batch] = taken
    return result

"""What a direct call of a library must give: the bits of its documented one."""

import numpy as np

from exactshap.frames import as_table


def check_bits(own, rows):
    """Compare the direct call with the documented one, which is asked for rows as they are."""
    array = own._cells(as_table(rows))
    direct = own._direct(own._model, array)
    documented = np.asarray(own._documented(own._model, rows))
    assert direct.shape == documented.shape
    assert direct.dtype == documented.dtype
    np.testing.assert_array_equal(direct, documented)
    np.testing.assert_array_equal(own(as_table(rows)), documented)
    assert own._agrees(own._direct)  # the direct call was taken

"""`tools/c_form.py` finds each form that it is there to find, and lets pass what is right."""

from __future__ import annotations

import pytest
from c_form import complaints

RIGHT = """dberr_t f(void)
{
    TRY(g());
    dberr_t err = h();
    release();
    TRY(err);
    AND_THEN(err, g());
    if (err != DB_SUCCESS) {
        release();
        return err;
    }
    if (err == DB_SUCCESS && more) {
        err = g();
    }
    return err;
}
"""


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ("if (err != DB_SUCCESS) {\n        return err;\n    }", "TRY"),
        ("if (err == DB_SUCCESS) {\n        err = g(1,\n                2);\n    }", "AND_THEN"),
        ("return err == DB_SUCCESS ? g() : err;", "TRY"),
        ('TRY(err_set(sink, DB_ERROR, "%s", why));', "return"),
        ("TRY(parse_error(p));", "return"),
        ("TRY(btr_corrupt(pool, btr));", "return"),
        ("err = g(1,\n            2);\n    TRY(err);", "TRY(call)"),
        ("/* " + "x" * 100 + " */", "columns"),
    ],
)
def test_each_form_by_hand_is_found(wrong: str, what: str) -> None:
    """With its line."""
    [(line, better)] = complaints(RIGHT.replace("    TRY(g());", f"    {wrong}"))
    assert line == 3
    assert what in better


def test_what_is_right_passes() -> None:
    """Also where something is released, and 100 columns that are more bytes."""
    assert not list(complaints(RIGHT + "/* " + "─" * 94 + " */\n"))

"""Scripts of one's own, in tests that look like any other."""

SCRIPT = """
create table t a:bigint b:char(40) primary a
insert_seq - t 1 200
flush table t
insert_seq - t 201 300
"""


def test_no_power_loss_breaks_this_script(torture):
    """The bundled engine, as it is."""
    assert torture.powerloss("engine", SCRIPT, states=200) == []


def test_without_doublewrite_a_page_is_torn(torture):
    """The control: what cannot fail proves nothing."""
    found = torture.powerloss("engine", SCRIPT, states=200, options={"doublewrite": "off"})
    assert 5 in {finding.invariant for finding in found}

from transformers.utils import logging

from draftmesh.stages.model.progress import bar, quiet


def test_quiet_restores_what_it_silenced():
    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    with quiet():
        assert logging.get_verbosity() == logging.ERROR
        assert not logging.is_progress_bar_enabled()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_bar_needs_a_terminal(capfd):
    with bar("Working", 2) as done:
        done(1)
    assert capfd.readouterr() == ("", "")

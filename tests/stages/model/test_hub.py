from huggingface_hub import constants

from draftmesh.stages.model import hub


class Session:
    def __init__(self, error=None):
        self.error, self.calls = error, 0

    def head(self, url, timeout):
        self.calls += 1
        if self.error:
            raise self.error


def test_the_hub_is_asked_once(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for session, expected in ((Session(), True), (Session(OSError("no route")), False)):
        monkeypatch.setattr(hub, "get_session", lambda session=session: session)
        assert hub.reachable() is expected
        assert session.calls == 1


def test_offline_is_respected(monkeypatch):
    session = Session()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "get_session", lambda: session)
    assert not hub.reachable()
    assert session.calls == 0

"""Downloads from a hub on this machine: what is fetched, resumed, checked, refused."""

import errno
import json
import shutil
import ssl
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme

from engine import tokenizer_files
from engine.errors import (
    Cancelled,
    DownloadError,
    EngineError,
    Incomplete,
    LoadError,
    Unsafe,
    Unsupported,
)
from engine.library import begun, download, transfer
from engine.library.begun import NOTE, PARTIAL, Begun
from engine.library.download import fetch, plan_of, repair, space
from engine.library.folder import describe
from engine.library.hub import Access, RemoteFile, contents, search
from engine.library.plan import Choice, Plan, choices, plan
from engine.library.starter import STARTER
from tests.hub import COMMIT, serving

WEIGHTS = bytes(range(256)) * 4096  # 1 MiB
CONFIG = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}).encode()
MODEL = {
    "config.json": CONFIG,
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"{{ x }}",
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"pickle",
    "modeling_custom.py": b"evil()",
    "onnx/model.onnx": b"other",
    "original/model.safetensors": b"other",
    ".gitattributes": b"",
}
REPOSITORIES = {
    "org/model": MODEL,
    "org/pickled": {"config.json": CONFIG, "pytorch_model.bin": b"pickle"},
    "org/empty": {"README.md": b"nothing"},
    "org/many-GGUF": {"m-Q4.gguf": b"4" * 100, "m-Q8.gguf": b"8" * 200, "config.json": b"{}"},
    "org/one-GGUF": {"m-00001-of-00002.gguf": b"1" * 50, "m-00002-of-00002.gguf": b"2" * 60},
    "org/coded": {"config.json": b'{"auto_map": {"AutoConfig": "c.C"}}', "model.safetensors": b"x"},
    "org/awq": {
        "config.json": json.dumps(
            {"model_type": "llama", "quantization_config": {"quant_method": "awq", "bits": 4}}
        ).encode(),
        "model.safetensors": b"x" * 500,
    },
    "org/bare": {
        "config.json": CONFIG,
        "tokenizer.json": b"{}",
        "model.safetensors": WEIGHTS[:1000],
    },
}


@pytest.fixture
def hub(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with serving({name: dict(files) for name, files in REPOSITORIES.items()}) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


def got(wanted, folder, **options):
    """The folder, and what was told on the way."""
    told = []
    target = fetch(wanted, folder, told.append, options.pop("stopped", lambda: False), **options)
    return target, told


def test_a_model_comes_with_what_it_needs_and_nothing_else(hub, tmp_path):
    wanted = plan("org/model")
    expected = {"config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"}
    assert {file.name for file in wanted.files} == expected
    assert wanted.commit == COMMIT
    assert wanted.size == sum(len(MODEL[name]) for name in expected)
    target, told = got(wanted, tmp_path)
    assert target == tmp_path / "org" / "model"
    there = {f.name: f.read_bytes() for f in target.iterdir() if f.name != NOTE}
    assert there == {name: MODEL[name] for name in expected}
    assert told[-1].done == told[-1].total == wanted.size
    assert [p.done for p in told] == sorted(p.done for p in told)


SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def index(*shards):
    return json.dumps({"weight_map": {f"t{n}": name for n, name in enumerate(shards)}}).encode()


def sharded(**index_of):
    return {
        "config.json": CONFIG,
        "tokenizer.json": b"{}",
        "model.safetensors.index.json": index(*SHARDS),
        **dict.fromkeys(SHARDS, b"w"),
        **index_of,
    }


@pytest.mark.parametrize(
    "name",
    [
        "model.fp16.safetensors",
        "model.fp32.safetensors",
        "model-fp16.safetensors",
        "model.fp16-00001-of-00002.safetensors",
        "model-00003-of-00003.safetensors",
        "consolidated.safetensors",
        "adapter_model.safetensors",
        "model.safetensors.index.fp16.json",
    ],
)
def test_of_several_variants_of_the_weights_only_those_that_are_loaded_come(hub, name):
    for repository in (dict(MODEL), sharded()):
        hub.repositories["org/model"] = repository
        before = {file.name for file in plan("org/model").files}
        hub.repositories["org/model"] = {**repository, name: b"x" * 50}
        assert {file.name for file in plan("org/model").files} == before
    assert before == set(sharded())
    assert hub.asked("00001-of-00002.safetensors") == 0


def test_beside_a_single_file_an_index_and_its_shards_are_not_needed(hub):
    hub.repositories["org/model"] = {**sharded(), **MODEL}
    names = {file.name for file in plan("org/model").files}
    assert "model.safetensors" in names
    assert not names.intersection([*SHARDS, "model.safetensors.index.json"])


@pytest.mark.parametrize(
    ("told", "match"),
    [
        (index("model-00001-of-00009.safetensors"), "model-00001-of-00009.safetensors is missing"),
        (index("../../out.safetensors"), r"\.\./\.\./out.safetensors is missing"),
        (index("pytorch_model.bin"), "is a pickle"),
        (index(), "is damaged"),
        (b"{}", "is damaged"),
        (b'{"weight_map": ["x"]}', "is damaged"),
        (b"<html>", "is damaged"),
        (b"[" * 100_000, "is damaged"),
    ],
)
def test_an_index_that_promises_what_is_not_there_is_said_before_a_weight(hub, told, match):
    hub.repositories["org/model"] = sharded(**{"model.safetensors.index.json": told})
    with pytest.raises(EngineError, match=match):
        plan("org/model")
    assert hub.asked("of-00002.safetensors") == 0


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("model.fp16.safetensors", "model.safetensors"),
        ("model-00001-of-00002.safetensors", "model.safetensors"),
    ],
)
def test_weights_that_would_not_be_loaded_are_not_fetched(hub, name, lacking):
    hub.repositories["org/model"] = {"config.json": CONFIG, "tokenizer.json": b"{}", name: b"w"}
    with pytest.raises(Incomplete, match=f"{lacking} is missing"):
        plan("org/model")


def test_a_model_without_a_tokenizer_is_refused_before_a_weight_as_by_loading(hub, tmp_path):
    for extra in ({}, {"tokenizer.model": b"m"}, {"tokenizer_config.json": b"{}"}):
        hub.repositories["org/model"] = {"config.json": CONFIG, "model.safetensors": b"w", **extra}
        with pytest.raises(Incomplete) as caught:
            plan("org/model")
        assert hub.asked("model.safetensors") == 0
    with pytest.raises(Incomplete) as loading:
        tokenizer_files.of_folder(tmp_path / "model", {}, {})
    assert caught.value.reason == loading.value.reason


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
        {"model_type": "t5", "is_encoder_decoder": True},
        {"model_type": "clip", "architectures": ["CLIPModel"]},
        {"architectures": ["LlamaForCausalLM"]},
        {"model_type": 5},
        {"model_type": "llama", "quantization_config": {"quant_method": "unheard of"}},
        None,
    ],
)
def test_what_does_not_write_text_is_refused_before_a_weight_as_by_loading(hub, tmp_path, config):
    files = {"tokenizer.json": b"{}", "model.safetensors": b"w"}
    if config is not None:
        files["config.json"] = json.dumps(config).encode()
    hub.repositories["org/model"] = files
    with pytest.raises(LoadError) as caught:
        plan("org/model")
    assert hub.asked("model.safetensors") == 0
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(LoadError) as loading:
        describe(tmp_path, "model")
    assert caught.value.reason == loading.value.reason


def test_a_head_needs_no_tokenizer_and_an_adapter_no_configuration(hub):
    head = {"model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"]}
    head["auto_map"] = {"AutoModel": "eagle3.Model"}
    hub.repositories["org/model"] = {
        "config.json": json.dumps(head).encode(),
        "model.safetensors": b"w",
    }
    assert len(plan("org/model").files) == 2
    hub.repositories["org/model"] = {
        "adapter_config.json": b"{}",
        "adapter_model.safetensors": b"w",
    }
    assert len(plan("org/model").files) == 2


def test_before_the_plan_is_carried_out_no_weight_is_asked_for(hub):
    plan("org/model")
    assert hub.asked("model.safetensors") == 0


def test_what_is_there_is_not_fetched_again_and_what_is_damaged_is(hub, tmp_path):
    """Repair: only the file at fault."""
    wanted = plan("org/model")
    target, _ = got(wanted, tmp_path)
    hub.requests.clear()
    got(wanted, tmp_path)
    assert hub.requests == []
    (target / "model.safetensors").write_bytes(b"x" * len(WEIGHTS))
    got(wanted, tmp_path)
    assert [path.rpartition("/")[2] for path, _ in hub.requests] == ["model.safetensors"]
    assert (target / "model.safetensors").read_bytes() == WEIGHTS


def test_a_connection_that_breaks_goes_on_where_it_was(hub, tmp_path):
    hub.cut["model.safetensors"] = [300_000, 200_000]
    target, _ = got(plan("org/model"), tmp_path)
    assert (target / "model.safetensors").read_bytes() == WEIGHTS
    ranges = [r for path, r in hub.requests if path.endswith("model.safetensors")]
    assert ranges == [None, "bytes=300000-", "bytes=500000-"]


def test_a_stopped_download_is_resumed_by_the_next(hub, tmp_path):
    wanted = plan("org/model")
    hub.pause = 0.001
    seen = []

    def stopped():
        seen.append(1)
        return len(seen) > 3

    with pytest.raises(Cancelled):
        got(wanted, tmp_path, stopped=stopped)
    target = tmp_path / "org" / "model"
    (partial,) = target.glob(f"*{PARTIAL}")
    assert not (target / "model.safetensors").exists()
    had = partial.stat().st_size
    assert 0 < had < len(WEIGHTS)
    hub.requests.clear()
    got(wanted, tmp_path)
    assert (target / "model.safetensors").read_bytes() == WEIGHTS
    assert ("/org/model/resolve/" + COMMIT + "/model.safetensors", f"bytes={had}-") in hub.requests
    assert not list(target.glob(f"*{PARTIAL}"))


def test_a_server_without_ranges_begins_anew(hub, tmp_path):
    hub.ranges = False
    hub.cut["model.safetensors"] = [300_000]
    target, _ = got(plan("org/model"), tmp_path)
    assert (target / "model.safetensors").read_bytes() == WEIGHTS


def test_a_wrong_hash_leaves_nothing_under_the_name(hub, tmp_path):
    wanted = plan("org/model")
    hub.lies["model.safetensors"] = b"y" * len(WEIGHTS)
    with pytest.raises(DownloadError, match="SHA-256"):
        got(wanted, tmp_path)
    target = tmp_path / "org" / "model"
    assert not (target / "model.safetensors").exists()
    assert not list(target.glob(f"*{PARTIAL}"))
    # the next time it comes right
    hub.lies.clear()
    got(wanted, tmp_path)
    assert (target / "model.safetensors").read_bytes() == WEIGHTS


def test_a_partial_file_that_is_not_its_beginning_is_found_out(hub, tmp_path):
    wanted = plan("org/model")
    target = tmp_path / "org" / "model"
    target.mkdir(parents=True)
    (target / f"model.safetensors{PARTIAL}").write_bytes(b"z" * 1000)
    with pytest.raises(DownloadError, match="SHA-256"):
        got(wanted, tmp_path)
    got(wanted, tmp_path)
    assert (target / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("status", "headers", "code"),
    [
        (401, {"X-Error-Code": "GatedRepo"}, "gated"),
        (403, {"X-Error-Code": "GatedRepo"}, "gated"),
        (401, {}, "no_repository"),
        (404, {"X-Error-Code": "RepoNotFound"}, "no_repository"),
        (404, {"X-Error-Code": "RevisionNotFound"}, "no_revision"),
        (403, {}, "refused"),
        (429, {"Retry-After": "17"}, "too_many"),
        (503, {}, "hub_failed"),
        (500, {}, "hub_failed"),
    ],
)
def test_what_the_hub_answers_is_said_in_plain_words(hub, status, headers, code):
    hub.fail["/api/models/org/model"] = (status, headers)
    with pytest.raises(DownloadError) as caught:
        plan("org/model")
    assert caught.value.reason.code == code
    if code == "gated":
        assert f"{hub.url}/org/model " in caught.value.reason.text
    if status == 429:
        assert "17 seconds" in caught.value.reason.text
        assert len(hub.requests) == 1


@pytest.mark.parametrize(
    ("status", "code"), [(401, "no_repository"), (403, "refused"), (500, "hub_failed")]
)
def test_a_refusal_in_the_middle_is_said_too(hub, tmp_path, status, code):
    wanted = plan("org/model")
    hub.fail["model.safetensors"] = (status, {})
    with pytest.raises(DownloadError) as caught:
        got(wanted, tmp_path)
    assert caught.value.reason.code == code
    assert not (tmp_path / "org" / "model" / "model.safetensors").exists()


def test_the_page_of_a_gated_repository_is_named_without_the_mirrors_password(hub, monkeypatch):
    hub.fail["/api/models/org/model"] = (403, {"X-Error-Code": "GatedRepo"})
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("//", "//me:secret@"))
    with pytest.raises(DownloadError) as caught:
        plan("org/model")
    assert f"Accept the terms at {hub.url}/org/model " in caught.value.reason.text


def test_a_wrong_token_is_told_from_a_missing_one(hub):
    wrong = {"X-Error-Message": "Invalid credentials in Authorization header"}
    hub.fail["/api/models/org/model"] = (401, wrong)
    with pytest.raises(DownloadError) as caught:
        plan("org/model", access=Access("hf_wrong"))
    assert caught.value.reason.code == "refused"


def test_a_hub_that_is_not_there_is_said(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError) as caught:
        plan("org/model")
    assert caught.value.reason.code == "no_hub"


def test_a_certificate_that_is_not_trusted_is_said_with_what_helps(monkeypatch):
    """DLD-2 (c): a company's proxy; checking is never switched off."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    with serving({"org/model": {"config.json": b"{}"}}, tls) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        for ask in (lambda: search("model"), lambda: plan("org/model")):
            with pytest.raises(DownloadError, match="does not trust the certificate") as caught:
                ask()
            assert caught.value.code == "untrusted"
            assert "root certificate" in str(caught.value)
        assert hub.requests == []


LOGIN = ("text/html; charset=utf-8", b"<html>Accept our terms</html>")


def sibling(**changed):
    good = {"rfilename": "model.safetensors", "size": 5, "blobId": "0" * 40}
    return json.dumps({"sha": COMMIT, "siblings": [good | changed]}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        LOGIN[1],
        b"",
        b"{}",
        b"[]",
        b"[" * 100_000,
        b'{"sha": ' + b"1" * 5000 + b"}",
        b"\xff\xfe",
        json.dumps({"sha": COMMIT}).encode(),
        json.dumps({"sha": COMMIT, "siblings": "model"}).encode(),
        json.dumps({"sha": COMMIT, "siblings": ["model"]}).encode(),
        json.dumps({"sha": COMMIT, "siblings": None}).encode(),
        json.dumps({"sha": None, "siblings": []}).encode(),
        json.dumps({"sha": "../../main", "siblings": []}).encode(),
        json.dumps({"siblings": []}).encode(),
        sibling(rfilename=5),
        sibling(rfilename=None),
        sibling(size="5"),
        sibling(size=-5),
        sibling(size=True),
        sibling(blobId="x"),
        sibling(blobId=[1]),
        sibling(lfs="x"),
        sibling(lfs={}),
        sibling(lfs={"sha256": 7}),
        sibling(lfs={"sha256": "../x"}),
    ],
)
def test_a_listing_that_is_not_the_hubs_is_said(hub, answer):
    """As of a login page between this computer and the hub."""
    hub.says["/api/models/org/model"] = ("application/json", answer)
    with pytest.raises(DownloadError, match=r"not the hub's.*login page") as caught:
        plan("org/model")
    assert caught.value.code == "not_the_hubs"
    assert len(hub.requests) == 1


def test_an_announced_file_comes_to_be_fetched_by_a_sound_listing(hub):
    hub.says["/api/models/org/model"] = ("application/json", sibling())
    file = RemoteFile("model.safetensors", 5, None, "0" * 40)
    assert contents("org/model").files == (file,)


def test_an_endless_listing_is_not_read_to_its_end(hub, monkeypatch):
    monkeypatch.setattr("engine.library.hub.LARGEST_ANSWER", 1000)
    hub.says["/api/models"] = ("application/json", b" " * 5000 + b"[]")
    for ask in (lambda: search("model"), lambda: plan("org/model")):
        with pytest.raises(DownloadError, match="not the hub's"):
            ask()


@pytest.mark.parametrize("answer", [LOGIN[1], b"{}", b'"x"', b"null"])
def test_a_search_that_the_hub_did_not_answer_is_said(hub, answer):
    hub.says["/api/models"] = ("text/html", answer)
    with pytest.raises(DownloadError, match="not the hub's"):
        search("model")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_login_page_is_not_taken_for_a_file(hub, tmp_path, name):
    wanted = plan("org/model")
    hub.says[f"resolve/{COMMIT}/{name}"] = LOGIN
    with pytest.raises(DownloadError, match="not the hub's"):
        got(wanted, tmp_path)
    assert not (tmp_path / "org" / "model" / name).exists()
    if name == "config.json":
        with pytest.raises(DownloadError, match="not the hub's"):
            plan("org/model")


@pytest.mark.parametrize(
    ("status", "headers"),
    [(301, {}), (307, {}), (308, {"Location": "/again"})],
)
def test_redirects_that_lead_nowhere_are_said(hub, tmp_path, status, headers):
    wanted = plan("org/model")
    hub.fail = {"again": (status, headers), "/": (status, headers)}
    for ask in (
        lambda: search("model"),
        lambda: plan("org/model"),
        lambda: got(wanted, tmp_path),
    ):
        with pytest.raises(DownloadError, match="not the hub's"):
            ask()
    assert not (tmp_path / "org" / "model" / "model.safetensors").exists()


@pytest.mark.parametrize("address", ["http://[::1", "http://a\x7fb"])
def test_an_address_that_is_none_is_said(hub, monkeypatch, address):
    monkeypatch.setenv("HF_ENDPOINT", address)
    for ask in (lambda: search("model"), lambda: plan("org/model")):
        with pytest.raises(DownloadError, match="HF_ENDPOINT"):
            ask()


def test_a_proxy_that_cannot_be_used_is_said_without_its_password(hub, monkeypatch):
    from huggingface_hub import close_session

    monkeypatch.setenv("HTTP_PROXY", "ftp://me:secret@proxy")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.delenv("no_proxy", raising=False)
    close_session()
    try:
        with pytest.raises(DownloadError, match="proxy") as caught:
            search("model")
    finally:
        close_session()
    assert caught.value.code == "bad_address"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("switched", [True, False])
def test_offline_means_no_request_at_all(hub, tmp_path, monkeypatch, switched):
    """By the switch, or by the environment whatever the switch says."""
    from huggingface_hub import constants

    wanted = plan("org/model")
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", not switched)
    access = Access(offline=switched)
    for call in (
        lambda: plan("org/model", access=access),
        lambda: search("model", access),
        lambda: got(wanted, tmp_path, access=access),
        lambda: repair(tmp_path / "org" / "model", tmp_path, print, bool, access),
        lambda: repair(tmp_path / STARTER.file, tmp_path, print, bool, access),
    ):
        with pytest.raises(DownloadError, match="Offline") as caught:
            call()
        assert caught.value.reason.code == ("offline" if switched else "offline_environment")
    assert hub.requests == []
    assert not (tmp_path / "org").exists()


def test_pickles_alone_are_refused_before_a_byte(hub):
    with pytest.raises(Unsafe, match="pickle"):
        plan("org/pickled")
    assert len(hub.requests) == 1


def test_code_of_its_own_is_refused_before_a_weight(hub):
    with pytest.raises(Unsafe, match="custom code"):
        plan("org/coded")
    assert hub.asked("safetensors") == 0


def test_what_cannot_run_here_is_refused_before_a_weight(hub, monkeypatch):
    """MEM-2."""
    from engine.library import formats

    monkeypatch.setattr(formats, "installed", lambda package: False)
    with pytest.raises(Unsupported, match="awq"):
        plan("org/awq")
    assert hub.asked("safetensors") == 0


def test_a_repository_without_weights_says_so(hub):
    with pytest.raises(DownloadError, match="no weights"):
        plan("org/empty")


def test_of_several_ggufs_one_has_to_be_named(hub, tmp_path):
    with pytest.raises(DownloadError, match=r"m-Q4\.gguf .*m-Q8\.gguf"):
        plan("org/many-GGUF")
    wanted = plan("org/many-GGUF", file="m-Q8.gguf")
    assert [file.name for file in wanted.files] == ["m-Q8.gguf"]
    target, _ = got(wanted, tmp_path)
    assert (target / "m-Q8.gguf").read_bytes() == b"8" * 200


def test_a_split_gguf_is_fetched_whole(hub):
    assert len(plan("org/one-GGUF").files) == 2


@pytest.mark.parametrize(
    "name", ["", "model", "a/b/c", "../x", "org/mo del", "org/" + "x" * 200, "-/…"]
)
def test_a_name_that_is_none_is_refused_without_a_request(hub, name):
    with pytest.raises(DownloadError, match="not the name of a repository"):
        plan(name)
    assert hub.requests == []


@pytest.mark.parametrize(
    "name", ["../out.safetensors", "a/b.json", "c:\\x.json", "..\\x.json", "x\n.json"]
)
def test_names_that_lead_out_of_the_folder_are_left_out(hub, name):
    hub.repositories["org/bare"][name] = b"evil"
    assert {file.name for file in plan("org/bare").files} == set(REPOSITORIES["org/bare"])


@pytest.fixture
def drive(tmp_path, monkeypatch):
    """One of two drives: 5 GB are free on it, plenty on the other. Like the real function, this
    one cannot ask of what does not exist."""
    drive = tmp_path / "drive"
    drive.mkdir()

    def usage(path):
        path = Path(path)
        path.stat()
        return SimpleNamespace(free=5 * 10**9 if path.is_relative_to(drive) else 10**15)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    return drive


def test_too_little_space_is_said_before_the_first_byte_and_leaves_nothing(hub, drive):
    """DLD-2 (a); the folder does not exist yet."""
    hub.sizes["model.safetensors"] = 12 * 10**9
    wanted = plan("org/model")
    hub.requests.clear()
    models = drive / "new" / "models"
    with pytest.raises(DownloadError) as caught:
        got(wanted, models)
    said = f"12.0 GB are needed, 5.0 GB are free in {models}."
    assert (caught.value.code, caught.value.reason.text) == ("no_space", said)
    assert hub.requests == []
    assert list(drive.iterdir()) == []
    assert begun.unfinished(models) == []


def test_what_has_come_already_takes_no_space_again(hub, drive):
    """DLD-2 (a)."""
    hub.sizes["model.safetensors"] = 12 * 10**9
    wanted = plan("org/model")
    models = drive / "models"
    assert not space(wanted, models).fits
    target = models / "org" / "model"
    target.mkdir(parents=True)
    with (target / f"model.safetensors{PARTIAL}").open("wb") as part:
        part.truncate(8 * 10**9)
    assert space(wanted, models).fits
    assert space(wanted, models).needed == wanted.size - 8 * 10**9
    # Fit to go on, it reads what there is, and is stopped there.
    with pytest.raises(Cancelled):
        got(wanted, models, stopped=lambda: True)


def test_a_repair_without_space_changes_nothing_and_is_not_begun(hub, tmp_path, monkeypatch):
    """The damaged file is as large as it should be: only its hash tells."""
    wanted = plan("org/model")
    target, _ = got(wanted, tmp_path)
    (target / "model.safetensors").write_bytes(b"x" * len(WEIGHTS))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(DownloadError, match=r"2 MB are needed, 0 MB are free"):
        got(wanted, tmp_path)
    assert begun.unfinished(tmp_path) == []
    assert (target / "model.safetensors").exists()


def test_a_drive_that_is_full_all_at_once_is_said_with_what_is_missing(hub, drive, monkeypatch):
    wanted = plan("org/model")

    def full(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(DownloadError, match=r"2 MB are needed, 5\.0 GB are free"):
        got(wanted, drive / "models")


def test_one_download_of_a_model_at_a_time(hub, tmp_path):
    wanted = plan("org/model")
    hub.pause = 0.002
    going, errors = threading.Event(), []

    def first():
        fetch(wanted, tmp_path, lambda p: going.set(), lambda: False)

    thread = threading.Thread(target=first)
    thread.start()
    assert going.wait(10)
    try:
        got(wanted, tmp_path)
    except DownloadError as error:
        errors.append(error.reason.code)
    thread.join()
    assert errors == ["already_running"]


def interrupted(wanted, models):
    """Ends `wanted` in the middle of its last file."""
    last, told = wanted.files[-1], []

    def stopped():
        return bool(told) and told[-1].done > wanted.size - last.size // 2

    with pytest.raises(Cancelled):
        fetch(wanted, models, told.append, stopped)


def test_what_was_begun_is_listed_and_goes_on_after_a_new_start(hub, tmp_path):
    models = tmp_path / "models"
    hub.repositories["org/many-GGUF"]["m-Q8.gguf"] = WEIGHTS
    wanted = plan("org/many-GGUF", file="m-Q8.gguf")
    interrupted(wanted, models)
    assert [known.plan for known in begun.unfinished(models)] == [wanted]
    come = begun.come(wanted, models)
    assert 0 < come < wanted.size
    assert space(wanted, models).needed == wanted.size - come
    hub.requests.clear()
    fetch(wanted, models, print, bool)
    assert [asked for _, asked in hub.requests] == [f"bytes={come}-"]
    assert begun.unfinished(models) == []
    assert begun.path_of(wanted, models) == models / "org" / "many-GGUF" / "m-Q8.gguf"


def test_what_was_begun_can_be_thrown_away(hub, tmp_path):
    models = tmp_path / "models"
    wanted = plan("org/model")
    hub.fail["tokenizer.json"] = (500, {})  # after the weights and the configuration
    with pytest.raises(DownloadError):
        fetch(wanted, models, print, bool)
    assert (models / "org" / "model" / "model.safetensors").exists()
    begun.forget(wanted, models)
    assert list(models.iterdir()) == []


def test_throwing_away_a_repair_leaves_what_was_there(hub, tmp_path):
    wanted = plan("org/model")
    target, _ = got(wanted, tmp_path)
    (target / "model.safetensors").write_bytes(b"x" * len(WEIGHTS))
    hub.fail["model.safetensors"] = (500, {})
    with pytest.raises(DownloadError):
        got(wanted, tmp_path)
    assert len(begun.unfinished(tmp_path)) == 1
    begun.forget(wanted, tmp_path)
    assert begun.unfinished(tmp_path) == []
    assert (target / "config.json").exists()
    assert (target / "model.safetensors").exists()
    hub.fail.clear()
    repair(target, tmp_path, print, bool)
    assert (target / "model.safetensors").read_bytes() == WEIGHTS


def test_throwing_one_of_a_collection_away_leaves_the_others(hub, tmp_path):
    kept, other = (plan("org/many-GGUF", file=f"m-Q{n}.gguf") for n in (4, 8))
    got(kept, tmp_path)
    hub.fail["m-Q8.gguf"] = (500, {})
    with pytest.raises(DownloadError):
        got(other, tmp_path)
    begun.forget(other, tmp_path)
    target = tmp_path / "org" / "many-GGUF"
    assert {file.name for file in target.iterdir()} == {"m-Q4.gguf", NOTE}
    assert begun.read(target) == [Begun(kept, whole=True, fresh=True)]


def test_a_repair_fetches_the_state_that_is_here_and_not_the_newest(hub, tmp_path):
    target, _ = got(plan("org/many-GGUF", file="m-Q8.gguf"), tmp_path)
    (target / "m-Q8.gguf").write_bytes(b"damaged")
    hub.requests.clear()
    path = target / "m-Q8.gguf"
    assert repair(path, tmp_path, print, bool) == path
    assert path.read_bytes() == b"8" * 200
    assert [path for path, _ in hub.requests] == [f"/org/many-GGUF/resolve/{COMMIT}/m-Q8.gguf"]


def test_a_small_file_that_is_damaged_is_found_by_its_git_hash(hub, tmp_path):
    target, _ = got(plan("org/model"), tmp_path)
    (target / "tokenizer.json").write_bytes(b"[]")
    hub.requests.clear()
    repair(target, tmp_path, print, bool)
    assert [path.rpartition("/")[2] for path, _ in hub.requests] == ["tokenizer.json"]
    assert (target / "tokenizer.json").read_bytes() == b"{}"


def test_a_model_without_a_note_is_repaired_by_its_folders_name(hub, tmp_path):
    target = tmp_path / "org" / "model"
    target.mkdir(parents=True)
    assert plan_of(target, tmp_path) == plan("org/model")


@pytest.mark.parametrize("path", ["model.gguf", "org/deep/er/model", "../other/model"])
def test_what_was_not_fetched_here_is_not_repaired(hub, tmp_path, path):
    with pytest.raises(DownloadError, match="was not fetched by this program"):
        repair(tmp_path / path, tmp_path, print, bool)
    assert hub.requests == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:40],
        lambda text: text.replace("m-Q4.gguf", "../m-Q4.gguf"),
        lambda text: text.replace("org/many-GGUF", "../many-GGUF"),
        lambda text: text.replace("100", "-1"),
        lambda text: "[]",
        lambda text: '{"downloads": 3}',
    ],
)
def test_a_note_that_is_damaged_counts_as_none(hub, tmp_path, damage):
    target, _ = got(plan("org/many-GGUF", file="m-Q4.gguf"), tmp_path)
    assert begun.read(target)
    (target / NOTE).write_text(damage((target / NOTE).read_text()))
    assert begun.read(target) == []
    assert begun.unfinished(tmp_path) == []


def test_more_bytes_than_announced_are_not_taken(hub, tmp_path, monkeypatch):
    hub.repositories["org/bare"]["model.safetensors"] = b"w" * 100_000
    wanted = plan("org/bare")

    def endless(*_):
        yield from (b"w" * 70_000 for _ in range(5))
        pytest.fail("it goes on")

    monkeypatch.setattr(download.hub, "stream", endless)
    with pytest.raises(DownloadError, match="more than the 100000 bytes"):
        got(wanted, tmp_path)
    assert not (tmp_path / "org" / "bare" / "model.safetensors").exists()


def test_a_connection_that_stays_broken_is_given_up(hub, tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(transfer, "wait", lambda seconds, _: waited.append(seconds))
    hub.cut["model.safetensors"] = [0] * 50
    with pytest.raises(DownloadError) as caught:
        got(plan("org/model"), tmp_path)
    assert caught.value.reason.code == "no_hub"
    assert waited == list(transfer.WAITS[1:])


def test_paths_of_every_script_blanks_and_signs_of_addresses_are_paths(hub, tmp_path, monkeypatch):
    """PER-4: also the folder for temporary files."""
    models = tmp_path / "田中　太郎 Ünï'x" / "данные #1%20&"
    temporary = tmp_path / "Ünï 田中　 #%20&"
    temporary.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    wanted = plan("org/model")
    hub.cut["model.safetensors"] = [300_000]
    hub.fail["tokenizer.json"] = (403, {})
    with pytest.raises(DownloadError):
        got(wanted, models)
    hub.fail.clear()
    assert [known.plan for known in begun.unfinished(models)] == [wanted]
    target, _ = got(wanted, models)
    assert target == models / "org" / "model"
    assert (target / "model.safetensors").read_bytes() == WEIGHTS
    (target / "tokenizer.json").write_bytes(b"[]")
    repair(target, models, print, bool)
    assert (target / "tokenizer.json").read_bytes() == b"{}"
    assert list(temporary.iterdir()) == []
    with pytest.raises(DownloadError) as caught:
        fetch(wanted, target / "config.json", print, bool)
    assert str(target) in caught.value.reason.text


def test_the_token_goes_to_the_hub_and_nowhere_else(hub, tmp_path, caplog):
    access = Access("hf_" + "s" * 30)
    assert access.token not in repr(access)
    got(plan("org/model", access=access), tmp_path, access=access)
    assert set(hub.tokens) == {f"Bearer {access.token}"}
    hub.fail["/api/models/org/model"] = (403, {})
    with pytest.raises(DownloadError) as caught:
        plan("org/model", access=access)
    assert access.token not in caught.value.reason.text
    assert access.token not in caplog.text
    assert access.token not in (tmp_path / "org" / "model" / NOTE).read_text()


def test_nothing_is_told_of_this_computer(hub, tmp_path):
    got(plan("org/model"), tmp_path)
    search("model")
    assert hub.agents == {"slipstream"}


def test_without_a_token_none_is_looked_for(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_environment")
    got(plan("org/model"), tmp_path)
    search("model")
    assert set(hub.tokens) == {None}


def test_the_files_of_a_gated_repository_come_with_the_token(hub, tmp_path):
    hub.secrets["org/model"] = "hf_right"
    for access in (Access(), Access("hf_wrong")):
        with pytest.raises(DownloadError) as caught:
            plan("org/model", access=access)
        assert caught.value.reason.code == "gated"
    right = Access("hf_right")
    target, _ = got(plan("org/model", access=right), tmp_path, access=right)
    assert (target / "model.safetensors").read_bytes() == WEIGHTS


def test_a_collection_is_listed_by_its_models_alone(hub):
    extra = {"mmproj-m.gguf": b"p", "x-00001-of-00002.gguf": b"1", "x-00002-of-00002.gguf": b"22"}
    hub.repositories["org/many-GGUF"].update(extra)
    assert choices(contents("org/many-GGUF")) == (
        Choice("m-Q4.gguf", 100),
        Choice("m-Q8.gguf", 200),
        Choice("x-00001-of-00002.gguf", 3),
    )
    assert choices(contents("org/model")) == ()
    assert choices(contents("org/one-GGUF")) == ()


def test_a_search_lists_what_the_hub_says(hub):
    hub.facts["org/model"] = {"gated": "manual", "tags": ["x", "license:apache-2.0"]}
    hub.facts["org/empty"] = {"pipeline_tag": "text-to-image"}
    found = {f.repository: f for f in search("model")}
    assert set(found) == set(REPOSITORIES) - {"org/empty"}
    assert all(f.downloads == 7 for f in found.values())
    assert found["org/model"].gated
    assert found["org/model"].licence == "apache-2.0"
    assert not found["org/bare"].gated
    assert len(search("model", limit=2)) == 2


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["transformers", "awq", "4-bit"], "awq"),
        (["gptq"], "gptq"),
        (["bitsandbytes", "4-bit"], "bitsandbytes"),
        (["compressed-tensors"], "compressed-tensors"),
        (["fp8"], "fp8"),
        (["base_model:quantized:org/awq"], None),
        (["awq", "gguf"], None),
        (["gguf", "imatrix"], None),
        ([5, None, ["awq"]], None),
        ("awq", None),
        (None, None),
    ],
)
def test_a_search_knows_what_weights_are_quantised_with(hub, tags, expected):
    """MEM-2: in search."""
    hub.facts["org/model"] = {"tags": tags}
    found = {f.repository: f for f in search("model")}
    assert found["org/model"].quantisation == expected


def test_an_endless_configuration_is_not_read_to_its_end(hub):
    hub.lies["config.json"] = b" " * (11 * 2**20)
    with pytest.raises(DownloadError, match="larger than"):
        plan("org/model")


def test_a_plan_adds_up():
    files = (RemoteFile("a", 3, None), RemoteFile("b", 4, None))
    assert Plan("o/r", COMMIT, files).size == 7

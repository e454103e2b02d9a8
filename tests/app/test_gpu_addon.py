"""The graphics card add-on from the first byte to its end: `slipstream gpu`, without a window."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

import resources
from app import bundle, gpu_addon, graphics, paths, settings, torch_addon
from app.__main__ import main
from app.graphics import State
from engine import trial
from engine.errors import Cancelled, EngineError
from engine.library import addon
from engine.library.begun import PARTIAL
from engine.library.hub import ANYONE
from tests import index as play
from tests import packaged
from tests.index import TORCH, build, index, table
from tests.nvml import Card, Nvml

EMPTY = "/nonexistent"


@pytest.fixture(autouse=True)
def _online(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.fixture
def card(monkeypatch):
    """The card that NVIDIA's library sees, and its driver."""
    nvml = Nvml(Card())
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The packaged program."""
    made = packaged.bundle(tmp_path)
    monkeypatch.setattr(bundle, "folder", lambda: made)
    monkeypatch.setattr(sys, "path", [str(made / "torch-cpu"), *sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return made


@pytest.fixture
def offer(program, card, monkeypatch):
    """An index that has what is pinned."""
    read, files = resources.read_text, {TORCH: play.torch()}
    served = SimpleNamespace(files=files, pins=table(build(files)))

    def pins(name):
        return served.pins if name == "gpu.json" else read(name)

    def put(data, **kwargs):
        files[TORCH] = data
        served.pins = table(build(files, **kwargs))

    served.put = put
    monkeypatch.setattr(resources, "read_text", pins)
    with index(files) as served.hub:
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.hub.url}/simple")
        yield served


def enable(stopped=lambda: False, progress=lambda _: None):
    gpu_addon.enable(progress, stopped, ANYONE)


def refused(**kwargs):
    with pytest.raises(EngineError) as caught:
        enable(**kwargs)
    return caught.value


def lying():
    """Names of what lies in the add-on's folder, deepest folders apart."""
    home = torch_addon.home()
    return {p.name for p in home.iterdir() if p.name != ".lock"} if home.exists() else set()


def test_nothing_is_asked_before_it_is_enabled(offer):
    outlook = graphics.look()
    assert outlook.state is State.OFFERED
    assert "NVIDIA GeForce RTX 4070" in outlook.said.text
    assert outlook.size == len(offer.files[TORCH])
    assert outlook.unpacked > 1_000_000
    assert offer.hub.requests == []
    assert not torch_addon.home().exists()


def test_it_is_fetched_tried_and_used_from_the_next_start_on(offer, program):
    stages = []
    enable(progress=lambda p: stages.append(p.stage))
    assert list(dict.fromkeys(stages)) == ["download", "unpack", "try"]
    assert lying() == {addon.NOTE, "site0"}
    assert graphics.look().state is State.READY
    started = packaged.start(program, "import torch; print(torch.__version__)")
    assert started.stdout.strip() == "2.13.0+cu130"


def test_undo_frees_the_disk_and_the_next_start_uses_the_processor(offer, program):
    enable()
    gpu_addon.disable()
    assert lying() == set()
    assert graphics.look().state is State.OFFERED
    started = packaged.start(program, "import torch; print(torch.name)")
    assert started.stdout.strip() == "packaged"


def test_while_it_is_in_use_its_files_stay_until_the_next_start(offer, monkeypatch):
    enable()
    site = torch_addon.home() / "site0"
    monkeypatch.setattr(torch_addon, "in_use", lambda: site)
    assert graphics.look().state is State.USED
    gpu_addon.disable()
    assert graphics.look().state is State.LEAVING
    gpu_addon.tidy()
    assert (site / "torch" / "__init__.py").exists()
    monkeypatch.setattr(torch_addon, "in_use", lambda: None)
    gpu_addon.tidy()
    assert lying() == set()


def test_stopped_and_enabled_again_it_goes_on(offer):
    come = []
    with pytest.raises(Cancelled):
        enable(lambda: len(come) > 3, come.append)
    outlook = graphics.look()
    assert outlook.state is State.OFFERED
    assert 0 < outlook.come < outlook.size
    enable()
    assert f"bytes={outlook.come}-" in [asked for _, asked in offer.hub.requests]
    assert graphics.look().state is State.READY


@pytest.mark.parametrize("stage", ["unpack", "try"])
def test_stopped_while_it_is_unpacked_or_tried_the_wheels_stay(offer, stage):
    seen = []
    with pytest.raises(Cancelled):
        enable(lambda: stage in seen, lambda p: seen.append(p.stage))
    assert addon.NOTE not in lying()
    asked = len(offer.hub.requests)
    enable()
    assert len(offer.hub.requests) == asked
    assert lying() == {addon.NOTE, "site0"}


KILLED = """
import os, sys, signal
from app import bundle, gpu_addon
import resources, pathlib
from engine.library.hub import ANYONE
from huggingface_hub import constants
from tests.nvml import Card, Nvml
sys.modules["pynvml"] = Nvml(Card())
constants.HF_HUB_OFFLINE = False
bundle.folder = lambda: pathlib.Path({bundle!r})
resources.read_text = lambda name: {pins!r}
seen = []
def progress(p):
    seen.append(p.stage)
    if seen.count({stage!r}) >= 2:
        os.kill(os.getpid(), signal.SIGKILL)
gpu_addon.enable(progress, lambda: False, ANYONE)
"""


@pytest.mark.parametrize("stage", ["download", "unpack"])
def test_killed_in_the_middle_the_program_starts_and_the_next_try_goes_on(offer, program, stage):
    source = KILLED.format(bundle=str(program), pins=offer.pins, stage=stage)
    done = subprocess.run([sys.executable, "-c", source], cwd=packaged.TOP, check=False)
    assert done.returncode == -signal.SIGKILL
    assert addon.NOTE not in lying()
    started = packaged.start(program, "import torch; print(torch.name)")
    assert started.stdout.strip() == "packaged"
    enable()
    assert lying() == {addon.NOTE, "site0"}
    whole = [asked for path, asked in offer.hub.requests if path.startswith("/files") and not asked]
    assert len(whole) == 1


@pytest.mark.parametrize(
    "torch",
    [
        play.torch(version="2.12.0+cu130"),
        play.torch(cuda="12.6"),
        play.torch(cuda=None),
    ],
    ids=["version", "cuda", "cpu"],
)
def test_one_that_is_not_what_it_should_be_is_removed(offer, torch):
    offer.put(torch)
    assert refused().code == "trial_wrong"
    assert lying() == set()
    assert graphics.look().state is State.OFFERED


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("os._exit(139)", "trial_crashed"),
        ("raise OSError('libcudart.so.13: no such file')", "trial_failed"),
    ],
)
def test_one_that_fails_when_it_is_tried_is_not_downloaded_again(offer, first, code):
    offer.put(play.torch(first=first))
    assert refused().code == code
    assert lying() == {addon.WHEELS}
    asked = len(offer.hub.requests)
    assert refused().code == code
    assert len(offer.hub.requests) == asked


def test_one_that_hangs_is_given_up_and_its_wheels_stay(offer, monkeypatch):
    monkeypatch.setattr(trial, "run", lambda *a, run=trial.run: run(*a, seconds=0.5))
    offer.put(play.torch(first="import time; time.sleep(60)"))
    before = multiprocessing.active_children()
    assert refused().code == "trial_slow"
    assert lying() == {addon.WHEELS}
    assert not [child for child in multiprocessing.active_children() if child not in before]


def test_one_that_sees_no_card_is_kept_off_and_can_be_tried_again(offer, program):
    offer.put(play.torch(card="os.path.exists(os.environ['CARD'])"))
    os.environ["CARD"] = EMPTY
    failed = refused()
    assert failed.code == "gpu_unusable"
    assert "no card in this play" in failed.reason.text
    outlook = graphics.look()
    assert (outlook.state, outlook.fresh) == (State.REFUSED, False)
    assert packaged.start(program, "import torch; print(torch.name)").stdout == "packaged\n"
    assert refused().code == "gpu_unusable"
    os.environ["CARD"] = str(program)
    asked = len(offer.hub.requests)
    enable()
    assert graphics.look().state is State.READY
    assert len(offer.hub.requests) == asked


def test_one_that_was_damaged_later_stays_refused_and_can_be_fetched_anew(offer, program):
    enable()
    library = torch_addon.home() / "site0/torch/lib/libtorch_cpu.so"
    library.write_bytes(b"cut off")
    packaged.start(program, "")
    outlook = graphics.look()
    assert (outlook.state, outlook.fresh) == (State.REFUSED, True)
    gpu_addon.note_told()
    assert graphics.look().fresh is False
    assert refused().code == "addon_damaged"
    gpu_addon.disable()
    enable()
    assert graphics.look().state is State.READY


def test_a_full_disk_while_unpacking_is_a_sentence(offer, monkeypatch):
    import errno

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gpu_addon.unpacking, "unpack", full)
    assert refused().code == "no_space"
    assert lying() == {addon.WHEELS}


def test_two_at_once_do_not_get_in_each_others_way(offer):
    codes = []

    def progress(_):
        if not codes:
            codes.append(refused().code)

    enable(progress=progress)
    assert codes == ["already_running"]


def test_a_newer_program_takes_no_older_addon_and_frees_its_space(offer, program, tmp_path):
    enable()
    shutil.rmtree(program)
    packaged.bundle(tmp_path, "2.14.0+cpu")
    assert packaged.start(program, "import torch; print(torch.name)").stdout == "packaged\n"
    assert graphics.look().state is State.TOLD  # nothing is pinned for it
    offer.pins = offer.pins.replace("2.13.0", "2.14.0", 1)
    assert graphics.look().state is State.OFFERED


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_it_is_used_where_new_folders_are_open_to_the_group(offer, program):
    home = torch_addon.home()
    home.mkdir(parents=True)
    home.chmod(0o775)  # as an earlier version left it
    before = os.umask(0o002)
    try:
        enable()
    finally:
        os.umask(before)
    started = packaged.start(program, "import torch; print(torch.__version__)")
    assert started.stdout.strip() == "2.13.0+cu130"


def test_without_a_card_enabling_leaves_no_folder(offer, card):
    card.fails = 12
    assert refused().code.startswith("gpu_")
    assert not torch_addon.home().exists()


def makers(tmp_path, *numbers):
    for at, number in enumerate(numbers):
        device = tmp_path / f"0000:00:0{at}.0"
        device.mkdir()
        (device / "vendor").write_text(f"{number}\n")
        (device / "class").write_text("0x030200\n")
    bridge = tmp_path / "0000:01:00.0"  # of Intel's, and no card
    bridge.mkdir()
    (bridge / "vendor").write_text("0x8086\n")
    (bridge / "class").write_text("0x060100\n")
    return tmp_path


@pytest.mark.parametrize(
    ("driver", "capability", "code"),
    [
        ("580.65.06", (7, 5), "gpu_offered"), ("580.65.05", (8, 9), "gpu_old_driver"),
        ("99.1", (8, 9), "gpu_old_driver"), ("610.3", (12, 0), "gpu_offered"),
        ("580.95.05", (6, 1), "gpu_old_card"), ("", (8, 9), "gpu_offered"),
    ],
)  # fmt: skip
def test_driver_and_card_must_be_new_enough(offer, card, driver, capability, code):
    card.driver, card.cards = driver, [Card(capability=capability)]
    said = graphics.look().said
    assert said.code == code
    if code == "gpu_old_driver":
        assert driver in said.text
        assert "580.65.06" in said.text


@pytest.mark.parametrize(
    ("numbers", "fails", "code"),
    [
        ((), 12, "gpu_none"), (("0x8086",), 12, "gpu_intel"), (("0x10de",), 12, "gpu_no_driver"),
        (("0x10de",), 18, "nvml_mismatch"), (("0x8086", "0x1002"), 12, "gpu_rocm"),
        (("0x10de",), None, "gpu_unlisted"), ((), None, "gpu_none"),
    ],
)  # fmt: skip
def test_why_the_processor_computes_is_said(offer, card, tmp_path, numbers, fails, code):
    card.fails, card.cards = fails, []
    pci = tmp_path / "pci"
    pci.mkdir()
    outlook = graphics.look(makers(pci, *numbers))
    assert outlook.said.code == code
    assert ("rocm" in outlook.command) == (code == "gpu_rocm")


@pytest.mark.parametrize("index", [graphics.CUDA_INDEX, graphics.ROCM_INDEX])
def test_the_command_for_another_build_is_the_readmes(index):
    readme = (packaged.TOP / "README.md").read_text(encoding="utf-8")
    assert f"`{graphics._anew(index)}`" in readme


def test_where_none_is_pinned_for_the_system_the_pip_command_is_shown(offer):
    offer.pins = '{"torch": "2.13.0", "builds": {}}'
    outlook = graphics.look()
    assert outlook.said.code == "gpu_not_offered"
    assert "pip install" in outlook.command
    assert refused().code == "gpu_not_offered"


def test_on_a_mac_there_is_nothing_to_do(offer, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert graphics.look().said.code == "gpu_mac"


@pytest.mark.parametrize(
    ("built", "code"), [("", "gpu_pip"), ("cuda", "gpu_built"), ("hip", "gpu_built")]
)
def test_installed_with_pip_the_command_is_shown_for_the_cpu_build(card, monkeypatch, built, code):
    from engine import devices

    monkeypatch.setattr(devices, "built_for", lambda: built)
    outlook = graphics.look()
    assert outlook.said.code == code
    assert outlook.command.startswith(sys.executable if code == "gpu_pip" else "")


def test_the_shipped_pins_are_a_cuda_build_and_whole():
    import json

    shipped = json.loads(resources.read_text("gpu.json"))
    linux = shipped["builds"]["cp311-linux_x86_64"]
    assert linux["cuda"]
    assert "+cpu" not in json.dumps(shipped)
    names = [wheel["name"] for wheel in linux["wheels"]]
    assert names[0].startswith(f"torch-{shipped['torch']}-cp311")
    assert {"nvidia_cublas", "nvidia_cudnn_cu13", "triton"} <= {n.split("-")[0] for n in names}
    for wheel in linux["wheels"]:
        assert len(wheel["sha256"]) == 64
        assert 0 < wheel["size"] < wheel["unpacked"] * 2
        assert wheel["tops"]
    assert 2e9 < sum(wheel["size"] for wheel in linux["wheels"]) < 4e9


def test_the_command_tells_enables_and_disables(offer, capsys):
    assert main(["gpu"]) == 0
    assert "“slipstream gpu enable” downloads 0.0 GB" in capsys.readouterr().out
    assert main(["gpu", "enable"]) == 0
    said = capsys.readouterr()
    assert "are downloaded" in said.err
    assert "From the next start on Slipstream computes on" in said.out
    assert main(["gpu", "disable"]) == 0
    assert "with an add-on that is downloaded" in capsys.readouterr().out


def test_offline_the_command_says_so(offer, capsys):
    settings.save(settings.Settings(offline=True), paths.config_folder())
    assert main(["gpu", "enable"]) == 1
    assert "Offline is switched on" in capsys.readouterr().err
    assert offer.hub.requests == []


def test_a_failed_download_is_a_sentence_in_the_terminal(offer, capsys):
    offer.hub.lies[TORCH] = offer.files[TORCH][:-1] + b"?"
    assert main(["gpu", "enable"]) == 1
    assert "is not the expected file" in capsys.readouterr().err
    assert not (torch_addon.home() / addon.WHEELS / f"{TORCH}{PARTIAL}").exists()
    assert main(["gpu"]) == 0

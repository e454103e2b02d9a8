"""Facts of published models: their configurations (tests/configs), and what follows by hand.

The configurations are the parts of each model's config.json that its size follows from.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import families

CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True)
class Facts:
    """`parameters` of what transformers builds, for text, by the publisher where one says it;
    `active` less those of the experts that a token does not go to.

    `full` and `window` are layers and numbers that each keeps of a token, `size` tokens of the
    window; `fixed` what running states take, in the model's type and in float32.
    """

    parameters: int
    active: int | None = None
    full: tuple[int, int] = (0, 0)
    window: tuple[int, int] = (0, 0)
    size: int = 0
    fixed: tuple[int, int] = (0, 0)

    def cache(self, tokens: int, element: int) -> int:
        """Bytes of all layers."""
        full, window = self.full[0] * self.full[1], self.window[0] * self.window[1]
        numbers = full * tokens + window * min(tokens, self.size)
        return element * (numbers + self.fixed[0]) + 4 * self.fixed[1]


FACTS = {
    "llama-3.1-8b": Facts(8_030_261_248, full=(32, 2 * 8 * 128)),
    "llama-3.2-1b": Facts(1_235_814_400, full=(16, 2 * 8 * 64)),
    "qwen2.5-7b": Facts(7_615_616_512, full=(28, 2 * 4 * 128)),
    "qwen3-8b": Facts(8_190_735_360, full=(36, 2 * 8 * 128)),
    "qwen3-30b-a3b": Facts(
        30_532_122_624, active=30_532_122_624 - 48 * 120 * 3 * 2048 * 768, full=(48, 2 * 4 * 128)
    ),
    "gemma-2-9b": Facts(9_241_705_984, full=(21, 2 * 8 * 256), window=(21, 2 * 8 * 256), size=4096),
    "gemma-3-4b": Facts(3_880_263_168, full=(5, 2 * 4 * 256), window=(29, 2 * 4 * 256), size=1024),
    "gemma-3-12b": Facts(
        11_766_034_176, full=(8, 2 * 8 * 256), window=(40, 2 * 8 * 256), size=1024
    ),
    # 18 of 42 layers read what others keep
    "gemma-4-e4b": Facts(7_463_013_376, full=(4, 2 * 2 * 512), window=(20, 2 * 2 * 256), size=512),
    "gemma-4-31b": Facts(
        30_697_345_280, full=(10, 2 * 4 * 512), window=(50, 2 * 16 * 256), size=1024
    ),
    "qwen3.5-4b": Facts(
        4_205_751_296,
        full=(8, 2 * 4 * 256),
        fixed=(24 * (2 * 16 * 128 + 32 * 128) * 4, 24 * 32 * 128 * 128),
    ),
    "qwen3-next-80b-a3b": Facts(
        79_674_391_296,
        active=79_674_391_296 - 48 * 502 * 3 * 2048 * 512,
        full=(12, 2 * 2 * 256),
        fixed=(36 * (2 * 16 * 128 + 32 * 128) * 4, 36 * 32 * 128 * 128),
    ),
    # a latent of 512 numbers and one rotary key of 64
    "deepseek-v3": Facts(
        671_026_404_352, active=671_026_404_352 - 58 * 248 * 3 * 7168 * 2048, full=(61, 512 + 64)
    ),
    "deepseek-v2-lite": Facts(
        15_706_484_224, active=15_706_484_224 - 26 * 58 * 3 * 2048 * 1408, full=(27, 512 + 64)
    ),
    "gpt-oss-20b": Facts(
        20_914_757_184,
        active=20_914_757_184 - 24 * 28 * (2880 * 5760 + 5760 + 2880 * 2880 + 2880),
        full=(12, 2 * 8 * 64),
        window=(12, 2 * 8 * 64),
        size=128,
    ),
    "lfm2-1.2b": Facts(1_170_340_608, full=(6, 2 * 8 * 64), fixed=(10 * 2048 * 3, 0)),
    "phi-3-mini-4k": Facts(3_821_079_552, window=(32, 2 * 32 * 96), size=2047),
    "mistral-7b-v0.3": Facts(7_248_023_552, full=(32, 2 * 8 * 128)),
    "mixtral-8x7b": Facts(
        46_702_792_704, active=46_702_792_704 - 32 * 6 * 3 * 4096 * 14_336, full=(32, 2 * 8 * 128)
    ),
    "olmoe-1b-7b": Facts(
        6_919_161_856, active=6_919_161_856 - 16 * 56 * 3 * 2048 * 1024, full=(16, 2 * 16 * 128)
    ),
    "mamba-codestral-7b": Facts(
        7_285_403_648, fixed=(64 * (8192 + 2 * 8 * 128) * 4, 64 * 128 * 64 * 128)
    ),
    "falcon-mamba-7b": Facts(7_272_665_088, fixed=(64 * 8192 * 4, 64 * 8192 * 16)),
    "smollm2-135m": Facts(134_515_008, full=(30, 2 * 3 * 64)),
    "glm-4-9b-0414": Facts(9_400_279_040, full=(40, 2 * 2 * 128)),
}


def config(name: str) -> dict[str, Any]:
    """A published configuration, its text part laid over the whole as a folder's is read."""
    found: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    return families.text_config(found)


def write(name: str, folder: Path) -> Path:
    """A folder with the published configuration and headers of its tensors, without their bytes.

    Names and shapes are those of the network that transformers builds; mixtures have a matrix for
    each expert, as their publishers write them.
    """
    import torch
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    folder.mkdir()
    stated = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(stated), encoding="utf-8")
    kind = stated.pop("model_type")
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(CONFIG_MAPPING[kind](**stated))
    header: dict[str, Any] = {}
    end = 0
    for key, parameter in network.named_parameters():
        for stored, shape in _stored(key, tuple(parameter.shape), kind):
            begin, end = end, end + 2 * math.prod(shape)
            header[stored] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    written = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(written).to_bytes(8, "little") + written)
        file.truncate(8 + len(written) + end)
    return folder


def _stored(key: str, shape: tuple[int, ...], kind: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    if ".experts." not in key or kind == "gpt_oss":
        yield key, shape
        return
    experts, out, width = shape
    layer, _, matrix = key.rpartition(".experts.")
    halves = ("gate_proj", "up_proj") if matrix == "gate_up_proj" else (matrix,)
    for expert in range(experts):
        for half in halves:
            yield f"{layer}.experts.{expert}.{half}.weight", (out // len(halves), width)

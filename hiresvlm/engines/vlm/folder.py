"""Finding a model on disk and looking at it: names, revisions, files. Imports no heavy library.

A model is a preset, the id of a hub repository (`owner/name`, `owner/name@revision`) or a local folder.
Whatever it is, loading happens from a local folder, so the network is touched by `fetch` alone and never
when the files are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from hiresvlm.engines.vlm.families import FAMILIES, Family, names
from hiresvlm.engines.vlm.presets import DEFAULT, NANO, PRESETS, Preset
from hiresvlm.engines.vlm.shape import Shape, shape_of
from hiresvlm.errors import EngineLoadError

CARD = "hiresvlm.json"
"""A file that a model folder may hold for us: name, revision and licence of the model, the instruction it
was trained with (`transcribe`), the height of capitals it needs (`legible`, `legible_clean`), its
`max_tokens`."""

WANTED = ("*.safetensors", "*.json", "*.jinja", "merges.txt", "vocab.txt", "LICENSE*")
"""Files that are fetched from a hub: never pickled weights, never code."""

_HUB_ID = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w.-]+))?")
_BLOCKS = 64
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Source:
    """A model by its identity, and its folder when it is on disk."""

    name: str
    """What records call it."""
    revision: str | None
    licence: str | None
    folder: Path | None
    repository: str | None = None
    preset: Preset | None = None

    @property
    def on_disk(self) -> bool:
        return self.folder is not None


@dataclass(frozen=True, slots=True)
class Model:
    """A model on disk, looked at but not loaded."""

    source: Source
    folder: Path
    config: Mapping[str, Any]
    card: Mapping[str, Any]
    shape: Shape

    @property
    def family(self) -> Family:
        return FAMILIES[self.shape.family]

    @property
    def quantized(self) -> bool:
        """The weights are stored in 4 bits already."""
        return "quantization_config" in self.config


def locate(model: str | None) -> Source:
    """Who a model is and where. Raises `EngineLoadError` for a name that is no model."""
    model = model or DEFAULT
    if model in PRESETS:
        preset = PRESETS[model]
        if preset.repository is None:
            return _local(nano_folder(), preset)
        folder = snapshot(preset.repository, preset.revision)
        return Source(preset.repository, preset.revision, preset.licence, folder, preset.repository, preset)
    if os.path.isdir(model):
        return _local(Path(model), None)
    match = _HUB_ID.fullmatch(model)
    if match is None or model.startswith((".", "/", "~")):
        raise EngineLoadError(
            f"there is no model {model}", f"presets: {', '.join(PRESETS)}; or a folder, or a hub id"
        )
    repository, revision = match[1], match[2]
    folder = snapshot(repository, revision)
    if folder is not None:
        revision = folder.name
    return Source(repository, revision, None, folder, repository)


def nano_folder() -> Path:
    """The model inside the package. Raises `EngineLoadError` where it was left out."""
    folder = Path(str(resources.files("hiresvlm"))) / "nano" / "weights"
    if not (folder / "config.json").is_file():
        raise EngineLoadError(
            "this installation has no model nano", "install hiresvlm again, or name another --model"
        )
    return folder


def hub_cache() -> Path:
    """Where the hub client keeps what it fetched: the same rules as `huggingface_hub.constants`."""
    environment = os.environ
    if "HF_HUB_CACHE" in environment:
        return Path(environment["HF_HUB_CACHE"]).expanduser()
    caches = environment.get("XDG_CACHE_HOME", "~/.cache")
    return Path(environment.get("HF_HOME", f"{caches}/huggingface")).expanduser() / "hub"


def snapshot(repository: str, revision: str | None) -> Path | None:
    """The folder of a repository that was fetched before, or None. No network."""
    root = hub_cache() / f"models--{repository.replace('/', '--')}"
    reference = root / "refs" / (revision or "main")
    if reference.is_file():
        revision = reference.read_text(encoding="utf-8").strip()
    if revision is None:
        return None
    folder = root / "snapshots" / revision
    return folder if (folder / "config.json").is_file() and not _missing_shards(folder) else None


def fetch(source: Source, wanted: Sequence[str] = WANTED) -> Source:
    """Download a model that is not on disk, or some of its files.

    Raises `EngineLoadError`, also where the network is forbidden.
    """
    assert source.repository is not None
    what = f"{source.repository}{'' if source.revision is None else '@' + source.revision}"
    hint = "fetch it on a machine with network (hf download), or give a local folder to --model"
    if is_offline():
        raise EngineLoadError(f"the model {what} is not on this machine, and HF_HUB_OFFLINE is set", hint)
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import snapshot_download

    try:
        path = snapshot_download(source.repository, revision=source.revision, allow_patterns=list(wanted))
    except Exception as error:  # the client's errors have no common base, and most are of the network
        raise EngineLoadError(f"the model {what} could not be fetched: {_why(error)}", hint) from error
    folder = Path(path)
    return Source(source.name, folder.name, source.licence, folder, source.repository, source.preset)


def _why(error: Exception) -> str:
    """In words, what a client of the hub reports as the name of a class."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return "its owner gives it to registered users only (hf auth login)"
    if isinstance(error, errors.RevisionNotFoundError):
        return "the hub knows no such revision"
    if isinstance(error, errors.RepositoryNotFoundError):
        return "the hub knows no such repository, or it is private"
    if isinstance(error, errors.LocalEntryNotFoundError | ConnectionError | TimeoutError):
        return "the hub cannot be reached"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"the hub's client reports {type(error).__name__}"


def fetch_facts(source: Source) -> tuple[Source, dict[str, Any], Shape]:
    """Revision, card and shape of a repository that is not on disk: its settings are fetched, no weights.

    Raises `EngineLoadError`.
    """
    found = fetch(source, ("*.json",))
    assert found.folder is not None
    config, card = _config(found.folder), _card(found.folder)
    return (
        Source(found.name, found.revision, None, None, found.repository),
        card,
        _shape(found.folder, config),
    )


def is_offline() -> bool:
    values = (os.environ.get("HF_HUB_OFFLINE"), os.environ.get("TRANSFORMERS_OFFLINE"))
    return any((value or "").upper() in ("1", "ON", "YES", "TRUE") for value in values)


def look(source: Source) -> Model:
    """Check the folder of a model that is on disk.

    Raises `EngineLoadError` for another architecture, missing or damaged files and pickled weights.
    """
    folder = source.folder
    assert folder is not None
    config = _config(folder)
    _check_files(folder)
    return Model(source, folder, config, _card(folder), _shape(folder, config))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a model folder. Raises `EngineLoadError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "a model folder holds config.json, tokenizer files and *.safetensors"
        raise EngineLoadError(f"{path} is missing", hint) from None
    except (OSError, ValueError) as error:
        raise EngineLoadError(f"{path} cannot be read", "download the model again") from error
    if not isinstance(value, dict):
        raise EngineLoadError(f"{path} is not a JSON object", "download the model again")
    return value


def fingerprint(folder: Path) -> str:
    """An id of the content of a local folder: settings in full, of weights their size and 64 blocks each.

    Hashing gigabytes on every start would take longer than a rerun may; a changed weight file of the same
    size differs in most of its blocks.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".json", ".safetensors", ".jinja", ".txt") or not path.is_file():
            continue
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with open(path, "rb") as file:
            if path.suffix != ".safetensors" or size <= _BLOCKS * _BLOCK:
                digest.update(file.read())
                continue
            for number in range(_BLOCKS):
                file.seek(number * (size - _BLOCK) // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()[:16]


def _config(folder: Path) -> dict[str, Any]:
    """`config.json`, of a family that the engine runs."""
    config = read_json(folder / "config.json")
    kind = config.get("model_type")
    if kind not in FAMILIES:
        named = ", ".join(map(str, config.get("architectures") or [kind]))
        raise EngineLoadError(
            f"{folder} holds {named}, which engine vlm does not run",
            f"it runs the families {names()}",
        )
    return config


def _shape(folder: Path, config: dict[str, Any]) -> Shape:
    try:
        if FAMILIES[config["model_type"]].sparse:
            config = _completed(folder, config)
        return shape_of(config)
    except (KeyError, TypeError) as error:
        raise EngineLoadError(f"{folder}/config.json lacks {error}", "download the model again") from error


def _completed(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """A `config.json` with the library's defaults for what it leaves out; the library is loaded only then."""
    try:
        shape_of(config)
    except (KeyError, TypeError):
        from transformers import AutoConfig

        try:
            return dict(AutoConfig.from_pretrained(folder, local_files_only=True).to_dict())
        except Exception as error:  # any field may be wrong; the reason is the library's
            message = f"{folder}/config.json cannot be used ({type(error).__name__})"
            raise EngineLoadError(message, "download the model again") from error
    return config


def _card(folder: Path) -> dict[str, Any]:
    return read_json(folder / CARD) if (folder / CARD).is_file() else {}


def _local(folder: Path, preset: Preset | None) -> Source:
    card = _card(folder)
    name = card.get("name") or (f"hiresvlm-{NANO}" if preset else folder.resolve().name)
    revision = card.get("revision") or fingerprint(folder)
    licence = card.get("licence") or (preset.licence if preset else None)
    return Source(str(name), str(revision), licence, folder, None, preset)


def _check_files(folder: Path) -> None:
    missing = _missing_shards(folder)
    if missing:
        pickled = [
            path.name for path in sorted(folder.iterdir()) if path.suffix in (".bin", ".pt", ".pth", ".ckpt")
        ]
        if pickled:
            raise EngineLoadError(
                f"{folder} has pickled weights ({pickled[0]}), which can run code and are never loaded",
                "convert them to safetensors, or take a model that has them",
            )
        raise EngineLoadError(f"{folder} lacks {missing[0]}", "download the model again; it is incomplete")
    if not (folder / "tokenizer.json").is_file() and not (folder / "vocab.json").is_file():
        raise EngineLoadError(f"{folder} lacks tokenizer.json", "download the model again; it is incomplete")


def _missing_shards(folder: Path) -> list[str]:
    """Weight files that are not there or empty, or that an index names and that are no safetensors."""
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(map(str, read_json(index).get("weight_map", {}).values())))
    return [
        name
        for name in names
        if not name.endswith(".safetensors")
        or not (folder / name).is_file()
        or not (folder / name).stat().st_size
    ]

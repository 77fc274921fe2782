"""What a memory is made of: values and TOML, what is on disk against what is asked for, what a directory may reach, and
the components. Fixed when the memory is made, and stored in its evokey.toml."""

from evokey.settings.components import (
    HUMAN,
    assemble,
    build,
    build_encoder,
    build_generator,
    build_retrievers,
    build_verifier,
    choose_verifier,
    describe_encoders,
)
from evokey.settings.opening import (
    needs,
    overwrite,
    read_trusted,
    read_whole,
    required_allowances,
    resolve,
    resolve_shared,
    shared_folder,
    write_new,
)
from evokey.settings.toml import FILE, load, place, read, to_toml
from evokey.settings.values import FORMAT, PARTS, RetrieverSettings, Settings, change, check, settings_of, spell

__all__ = [
    "FILE",
    "FORMAT",
    "HUMAN",
    "PARTS",
    "RetrieverSettings",
    "Settings",
    "assemble",
    "build",
    "build_encoder",
    "build_generator",
    "build_retrievers",
    "build_verifier",
    "change",
    "check",
    "choose_verifier",
    "describe_encoders",
    "load",
    "needs",
    "overwrite",
    "place",
    "read",
    "read_trusted",
    "read_whole",
    "required_allowances",
    "resolve",
    "resolve_shared",
    "settings_of",
    "shared_folder",
    "spell",
    "to_toml",
    "write_new",
]

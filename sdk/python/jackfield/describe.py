"""What a policy says of itself."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from .types import U32, Field


@dataclass
class Description:
    name: str
    version: str
    # JSON Schema of `rules.toml`; may be given as a dict.
    config_schema: str = "{}"
    # Version of the dialog schema that the policy writes; 0 for none.
    dialog_schema: U32 = 0
    reads_dialog_schemas: list[U32] = field(default_factory=list)
    attributes: list[Field] = field(default_factory=list)

    def __post_init__(self):
        if not isinstance(self.config_schema, str):
            self.config_schema = json.dumps(self.config_schema, ensure_ascii=False)


def beside(file, name="config.schema.json"):
    """The text of a file beside `app.py`: `beside(__file__)`. Read when the policy is built, so only at module level."""
    return Path(file).with_name(name).read_text(encoding="utf-8")

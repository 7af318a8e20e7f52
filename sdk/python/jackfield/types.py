"""The contract's records (`wit/policy.wit` says what each field means), with defaults where there is a natural one.

Spans, and everything else that counts text, count characters here.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal, Optional, Union

U8 = Annotated[int, 0xFF]
U16 = Annotated[int, 0xFFFF]
U32 = Annotated[int, 0xFFFF_FFFF]

Role = Literal["system", "user", "assistant", "tool"]
Mode = Literal["generate", "classify", "embed"]


@dataclass
class Span:
    start: U32
    end: U32


@dataclass
class Field:
    name: str
    value: str


@dataclass
class Message:
    role: Role
    text: str


@dataclass
class Instant:
    unix_ms: float = 0.0
    utc_offset_minutes: int = 0


@dataclass
class Turn:
    id: str = ""
    tenant: str = ""
    session: Optional[str] = None
    task: Optional[str] = None
    locale: str = ""
    now: Instant = field(default_factory=Instant)
    seed: U32 = 0
    headers: list[Field] = field(default_factory=list)
    attributes: list[Field] = field(default_factory=list)


# The cases of a slot's value.


@dataclass
class Text:
    value: str


@dataclass
class Number:
    value: float


@dataclass
class Boolean:
    value: bool


@dataclass
class Date:
    value: str


@dataclass
class Choice:
    value: str


Value = Union[Text, Number, Boolean, Date, Choice]


@dataclass
class Slot:
    name: str
    value: Value
    source: Optional[Span] = None
    confidence: float = 1.0


@dataclass
class Edit:
    message: U32
    at: Span
    replacement: str = ""


# Slot extractors.

# None goes on to the model, messages go on with these instead, a text is the answer.
Next = Union[None, list[Message], str]


@dataclass
class Dialog:
    state: str = ""
    slots: list[Slot] = field(default_factory=list)
    schema: U32 = 0


@dataclass
class Transition:
    state: str
    set: list[Slot] = field(default_factory=list)
    clear: list[str] = field(default_factory=list)
    next: Next = None
    attributes: list[Field] = field(default_factory=list)


# Routers.


@dataclass
class Target:
    model: str
    modes: list[Mode] = field(default_factory=lambda: ["generate"])
    queue_depth: U32 = 0
    free_blocks: U32 = 0
    cached_tokens: U32 = 0
    ttft_p50_ms: float = 0.0
    attributes: list[Field] = field(default_factory=list)


@dataclass
class Request:
    prompt_tokens: U32 = 0
    messages: U32 = 1
    last_user_text: str = ""
    slots: list[Slot] = field(default_factory=list)
    wanted_model: str = ""
    max_tokens: Optional[U32] = None
    attributes: list[Field] = field(default_factory=list)


@dataclass
class Bias:
    text: str
    logit: float


@dataclass
class JsonSchema:
    value: str


@dataclass
class Regex:
    value: str


@dataclass
class Lark:
    value: str


Grammar = Union[JsonSchema, Regex, Lark]


@dataclass
class Guidance:
    stop: list[str] = field(default_factory=list)
    bias: list[Bias] = field(default_factory=list)
    grammar: Optional[Grammar] = None


@dataclass
class Plan:
    target: str
    mode: Mode = "generate"
    task: Optional[str] = None
    priority: U8 = 100
    deadline_ms: Optional[U32] = None
    max_tokens: Optional[U32] = None
    draft_tokens: Optional[U8] = None
    exit_threshold: Optional[float] = None
    compress_to: Optional[float] = None
    minimal_output: bool = False
    keep_cache_s: Optional[U32] = None
    guidance: Optional[Guidance] = None
    attributes: list[Field] = field(default_factory=list)


@dataclass
class Refusal:
    status: U16
    reason: str


# A plan runs, a text is the answer, a refusal refuses.
Decision = Union[Plan, str, Refusal]


# Compressors.


@dataclass
class Part:
    message: Message
    protected: list[Span] = field(default_factory=list)
    # Leading characters whose KV the target already holds.
    cached: U32 = 0


@dataclass
class Budget:
    keep_tokens: U32 = 0
    prompt_tokens: U32 = 0
    us_per_token: float = 0.0


# Output filters.


@dataclass
class Watch:
    name: str
    regex: str


@dataclass
class Interest:
    watches: list[Watch] = field(default_factory=list)
    # In bytes.
    sent_tail_bytes: U16 = 0
    token_probabilities: bool = False
    attributes: list[Field] = field(default_factory=list)


@dataclass
class Hit:
    watch: U32
    at: Span
    cut: bool = False


@dataclass
class Token:
    end: U32
    probability: float


@dataclass
class Window:
    stream_id: U32 = 0
    sent_tail: str = ""
    pending: str = ""
    hits: list[Hit] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    final: bool = False


@dataclass
class Replacement:
    at: Span
    text: str


@dataclass
class Verdict:
    window: U32
    replace: list[Replacement] = field(default_factory=list)
    # Trailing characters of `pending` that must not be sent yet; with `stop`, never.
    hold: U32 = 0
    stop: Optional[str] = None

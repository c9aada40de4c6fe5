"""The control block as Python sees it: the mirror of ``control.h``, whose comments give the units."""

from __future__ import annotations

from ctypes import Array, Structure, c_char, c_double, c_int32, c_uint32, c_uint64
from enum import IntEnum, IntFlag

MAGIC = 0x464E564C
VERSION = 2
MAX_DEVICES = 8
MAX_INSTANCES = 8
MAX_LINKS = 18
MAX_FIELDS = 32
MAX_METRICS = 16
MAX_PROCESSES = 16
MAX_EVENTS = 64
MAX_RULES = 64
LOCATIONS = 8
LINK_ERRORS = 5
POLICIES = 8
OUTSIDE_MIG = 0xFFFFFFFF
"""The GPU and compute instance of what runs on a whole GPU."""


class Feature(IntFlag):
    """What a GPU can do. What it can't do answers NOT_SUPPORTED, as on the hardware."""

    MEMORY = 1 << 0
    UTILIZATION = 1 << 1
    PCIE_THROUGHPUT = 1 << 2
    """The call that measures for 20 ms."""
    PCIE_COUNTERS = 1 << 3
    """The field values 197 and 198."""
    PCIE_LINK = 1 << 4
    GPM = 1 << 5
    CLOCK_REASONS = 1 << 6
    ECC = 1 << 7
    REMAPPED_ROWS = 1 << 8
    EVENTS = 1 << 9
    PROCESSES = 1 << 10
    SAMPLES = 1 << 11
    """The driver's own samples, of a GPU and of a process."""
    POWER = 1 << 12
    MEMORY_TEMPERATURE = 1 << 13
    NVLINK = 1 << 14


class Presence(IntEnum):
    """Whether a GPU answers."""

    PRESENT = 0
    LOST = 1
    """Fallen off the bus: still counted, and every call says that it is lost."""
    GONE = 2
    """Not counted any more either, as after the next initialisation of a driver."""


class Hang(IntEnum):
    """How a call fails to come back."""

    NONE = 0
    SLEEPING = 1
    UNINTERRUPTIBLE = 2
    """In state D."""


class Flow(IntEnum):
    """What bytes flow: transmit is away from the GPU, receive towards it."""

    PCIE_TX = 0
    PCIE_RX = 1
    NVLINK_TX = 2
    NVLINK_RX = 3


class ProcessKind(IntEnum):
    """Which of the process lists names a process."""

    COMPUTE = 0
    GRAPHICS = 1
    MPS = 2


class Rule(Structure):
    """What happens to calls of one function."""

    _fields_ = (
        ("function", c_char * 64),
        ("device", c_int32),
        ("code", c_int32),
        ("delay_us", c_uint32),
        ("hang", c_uint32),
        ("after", c_uint32),
        ("times", c_uint32),
        ("hits", c_uint32),
        ("held", c_uint32),
    )
    function: bytes
    device: int
    code: int
    delay_us: int
    hang: int
    after: int
    times: int
    hits: int
    """Calls that matched so far."""
    held: int
    """Calls that are asleep or hang in it now."""


class FlowRate(Structure):
    """Bytes that flowed: ``base`` and ``rate`` (bytes/s) since an instant."""

    _fields_ = (("rate", c_double), ("base", c_double), ("since_us", c_double))
    rate: float
    base: float
    since_us: float


class FlowRates(Structure):
    """All flows of a GPU, twice: in force is slot ``version // 2 % 2``; an odd version is a change under way."""

    _fields_ = (("version", c_uint32), ("spare", c_uint32), ("slot", (FlowRate * len(Flow)) * 2))
    version: int
    slot: Array[Array[FlowRate]]


class Instance(Structure):
    """A MIG device."""

    _fields_ = (
        ("uuid", c_char * 96),
        ("gpu_instance", c_uint32),
        ("compute_instance", c_uint32),
        ("memory_total", c_uint64),
        ("memory_used", c_uint64),
        ("memory_reserved", c_uint64),
    )
    uuid: bytes
    gpu_instance: int
    compute_instance: int
    memory_total: int
    memory_used: int
    memory_reserved: int


class Field(Structure):
    """A field value that is given, instead of the library's own."""

    _fields_ = (
        ("id", c_uint32),
        ("scope", c_uint32),
        ("code", c_int32),
        ("type", c_int32),
        ("value", c_double),
    )
    id: int
    scope: int
    code: int
    type: int
    value: float


class Metric(Structure):
    """A GPM metric that is given."""

    _fields_ = (("id", c_uint32), ("code", c_int32), ("value", c_double))
    id: int
    code: int
    value: float


class Process(Structure):
    """A process on a GPU."""

    _fields_ = (
        ("pid", c_uint32),
        ("kind", c_uint32),
        ("gpu_instance", c_uint32),
        ("compute_instance", c_uint32),
        ("sm_util", c_uint32),
        ("memory_util", c_uint32),
        ("encoder_util", c_uint32),
        ("decoder_util", c_uint32),
        ("memory", c_uint64),
    )
    pid: int
    kind: int
    gpu_instance: int
    compute_instance: int
    sm_util: int
    memory_util: int
    encoder_util: int
    decoder_util: int
    memory: int


class Event(Structure):
    """Something that happened on a GPU."""

    _fields_ = (("device", c_int32), ("spare", c_uint32), ("type", c_uint64), ("data", c_uint64))
    device: int
    type: int
    data: int

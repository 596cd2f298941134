"""What a program or library of 64 bits (ELF, x86-64) lacks of what keeps a fault in it from being used."""
import functools
import struct

LOAD, DYNAMIC, STACK, RELRO = 1, 2, 0x6474E551, 0x6474E552
WRITE, EXECUTE = 2, 1
TEXTREL, FLAGS, FLAGS_1 = 22, 30, 0x6FFFFFFB
SYMBOLS, DYNAMIC_SYMBOLS, FUNCTION, GLOBAL = 2, 11, 2, 1
BRANCH_TARGET = b"\xf3\x0f\x1e\xfa"  # endbr64
CANARY = b"\x25\x28\x00\x00\x00"  # … %fs:0x28, which stack protectors read

# Of each, what g++ is told to have it, and not to have it.
HARDENING = {
    "any address": (["-fPIE", "-pie"], ["-no-pie"]),
    "a stack of data": (["-Wl,-z,noexecstack"], ["-Wl,-z,execstack"]),
    "tables that are read only": (["-Wl,-z,relro"], ["-Wl,-z,norelro"]),
    "functions bound at the start": (["-Wl,-z,now"], ["-Wl,-z,lazy"]),
    "guarded stacks": (["-fstack-protector-strong"], ["-fno-stack-protector"]),
    "checked copies": (["-D_FORTIFY_SOURCE=3"], ["-U_FORTIFY_SOURCE"]),
    "marked branch targets": (["-fcf-protection=full"], ["-fcf-protection=none"]),
}


class Elf:
    def __init__(self, path):
        self.data = data = path.read_bytes()
        self.type, = struct.unpack_from("<H", data, 16)
        begin, sections = struct.unpack_from("<QQ", data, 32)
        size, count, section_size, section_count, _ = struct.unpack_from("<HHHHH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, begin + i * size) for i in range(count)]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * section_size)
                         for i in range(section_count)]
        self.dynamic = {}
        for kind, _, offset, _, _, length, _, _ in self.segments:
            if kind == DYNAMIC:
                self.dynamic = dict(struct.iter_unpack("<QQ", data[offset:offset + length]))

    def flags(self, kind):
        return [segment[1] for segment in self.segments if segment[0] == kind]

    @functools.cached_property
    def symbols(self):
        """(name, kind, binding, bytes) of each; without bytes where it is another library's."""
        found = []
        for _, kind, _, _, offset, length, link, _, _, _ in self.sections:
            if kind not in (SYMBOLS, DYNAMIC_SYMBOLS):
                continue
            names = self.sections[link][4]
            for name, info, _, section, value, size in struct.iter_unpack("<IBBHQQ",
                                                                          self.data[offset:offset + length]):
                text = self.data[names + name:self.data.index(b"\0", names + name)].decode()
                found.append((text, info & 15, info >> 4, self._bytes(section, value, size)))
        return found

    def _bytes(self, section, value, size):
        if not 0 < section < len(self.sections):
            return b""
        _, _, _, address, offset, *_ = self.sections[section]
        return self.data[offset + value - address:offset + value - address + size]


def weaknesses(path):
    """The names, of HARDENING, of what it lacks; "writable code" and "relocated code" besides."""
    elf = Elf(path)
    own = [code for name, kind, binding, code in elf.symbols
           if kind == FUNCTION and binding == GLOBAL and "8fleetrun" in name and ".cold" not in name and code]
    # Where symbols were stripped it is looked for anywhere in the code.
    code = own or [elf.data[begin:begin + length] for kind, flags, begin, _, _, length, _, _ in elf.segments
                   if kind == LOAD and flags & EXECUTE]
    names = {name for name, *_ in elf.symbols}
    holds = {
        "any address": elf.type == 3,
        "a stack of data": elf.flags(STACK) == [6],
        "tables that are read only": bool(elf.flags(RELRO)),
        "functions bound at the start": bool(elf.dynamic.get(FLAGS, 0) & 8 | elf.dynamic.get(FLAGS_1, 0) & 1),
        "guarded stacks": any(CANARY in part for part in code),
        "checked copies": any(name.startswith("__") and name.endswith("_chk") for name in names),
        "marked branch targets": (all(part.startswith(BRANCH_TARGET) for part in own) if own
                                  else any(BRANCH_TARGET in part for part in code)),
        "writable code": not [flags for flags in elf.flags(LOAD) if flags & WRITE and flags & EXECUTE],
        "relocated code": TEXTREL not in elf.dynamic,
    }
    return [name for name, is_so in holds.items() if not is_so]

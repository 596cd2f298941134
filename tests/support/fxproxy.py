"""usage: fxproxy.py --listen HOST:PORT --to HOST:PORT [--seed N]

A TCP proxy that treats its connections badly, for tests. It says "listening on HOST:PORT" and then obeys
lines on its standard input, each answered with "ok" or "error: ...":

  up WHAT [VALUES]       adds to what is done to the bytes from the one who dials
                         to the one who listens; `down`: the other way
  both WHAT [VALUES]     adds to both directions
  clear                  the end of all that; what a connection has lost stays lost
  reset                  resets every connection now (RST); close: ends every connection (FIN)
  replay                 dials anew and sends what the first connection has sent so far,
                         once more; half a second for answers
  count                  answers "ok CONNECTIONS UP_BYTES DOWN_BYTES"

  delay MS [JITTER_MS]   each piece is late by that much, and still in order
  rate BYTES_PER_SECOND
  slice BYTES            pieces of that size, each by itself
  limit BYTES [rst]      after so many bytes of a connection it is closed
  hole                   nothing arrives any more, nobody is told
  flip PROBABILITY       of a byte: one of its bits is flipped
  repeat PROBABILITY     of a piece: it is sent twice

Random choices come from the seed. In a test: with Proxy(to=("h2", 4000)) as proxy:
proxy.do("up delay 50 20").
"""

import argparse
import asyncio
import contextlib
import random
import socket
import struct
import subprocess
import sys

PIECE = 65536


class Treatment:
    """What is done to one direction."""

    KINDS = {"delay": (1, 2), "rate": (1, 1), "slice": (1, 1), "limit": (1, 2), "hole": (0, 0),
             "flip": (1, 1), "repeat": (1, 1)}

    def __init__(self):
        self.clear()

    def clear(self):
        self.delay, self.jitter, self.rate, self.slice, self.limit, self.abrupt = (0.0, 0.0, 0.0, PIECE, None,
                                                                                   False)
        self.hole, self.flip, self.repeat = False, 0.0, 0.0

    def add(self, kind, values):
        least, most = self.KINDS[kind]
        if not least <= len(values) <= most:
            raise ValueError(f"{kind} takes {least} to {most} values")
        if kind == "delay":
            self.delay, self.jitter = float(values[0]) / 1000, float(values[1]) / 1000 if values[1:] else 0.0
        elif kind == "limit":
            self.limit, self.abrupt = int(values[0]), values[1:] == ["rst"]
        elif kind == "hole":
            self.hole = True
        else:
            setattr(self, kind, int(values[0]) if kind == "slice" else float(values[0]))


class Relay:
    """The proxy itself: accepts, dials, and passes bytes on."""

    def __init__(self, target, seed):
        self.target, self.random = target, random.Random(seed)
        self.up, self.down = Treatment(), Treatment()
        self.connections, self.tasks = set(), set()
        self.count, self.bytes = 0, {"up": 0, "down": 0}
        self.recorded = None

    async def accept(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            abort(writer)
            return
        pair = (writer, far_writer)
        self.connections.add(pair)
        self.count += 1
        record = self.recorded = bytearray() if self.recorded is None else None
        try:
            await asyncio.gather(self.pump(reader, far_writer, pair, "up", record),
                                 self.pump(far_reader, writer, pair, "down", None))
        finally:
            self.connections.discard(pair)
            for end in pair:
                end.close()

    async def pump(self, reader, writer, pair, way, record):
        treatment, passed = getattr(self, way), 0
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(PIECE):
                if record is not None:
                    record.extend(data)
                while data:
                    piece, data = data[:treatment.slice], data[treatment.slice:]
                    if treatment.hole:
                        continue
                    over = treatment.limit is not None and passed + len(piece) >= treatment.limit
                    if over:
                        piece = piece[:treatment.limit - passed]
                    await self.send(writer, piece, treatment)
                    passed += len(piece)
                    self.bytes[way] += len(piece)
                    if over:
                        for end in pair:
                            abort(end) if treatment.abrupt else end.close()
                        return
            if not treatment.hole:
                writer.write_eof()

    async def send(self, writer, piece, treatment):
        if treatment.delay or treatment.jitter:
            await asyncio.sleep(max(0.0, treatment.delay + self.random.uniform(-treatment.jitter,
                                                                               treatment.jitter)))
        if treatment.rate:
            await asyncio.sleep(len(piece) / treatment.rate)
        if treatment.flip:
            piece = bytearray(piece)
            for at in range(len(piece)):
                if self.random.random() < treatment.flip:
                    piece[at] ^= 1 << self.random.randrange(8)
        for _ in range(2 if self.random.random() < treatment.repeat else 1):
            writer.write(piece)
            await writer.drain()

    async def replay(self):
        reader, writer = await asyncio.open_connection(*self.target)
        writer.write(bytes(self.recorded or b""))
        await writer.drain()
        with contextlib.suppress(ConnectionError, asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(), 0.5)
        writer.close()

    async def obey(self, line):
        word, *values = line.split()
        if word in ("up", "down", "both"):
            for way in ("up", "down") if word == "both" else (word,):
                getattr(self, way).add(values[0], values[1:])
        elif word == "clear":
            self.up.clear()
            self.down.clear()
        elif word in ("reset", "close"):
            for end in [end for pair in self.connections for end in pair]:
                abort(end) if word == "reset" else end.close()
        elif word == "replay":
            await self.replay()
        elif word == "count":
            return f"ok {self.count} {self.bytes['up']} {self.bytes['down']}"
        else:
            raise ValueError(f"unknown word {word}")
        return "ok"


def abort(writer):
    """Ends a connection with RST."""
    end = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def split_endpoint(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


async def serve(options):
    relay = Relay(split_endpoint(options.to), options.seed)
    server = await asyncio.start_server(relay.accept, *split_endpoint(options.listen))
    host, port = server.sockets[0].getsockname()[:2]
    print(f"listening on {host}:{port}", flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).decode():
        try:
            print(await relay.obey(line), flush=True)
        except (ValueError, KeyError, IndexError, OSError) as wrong:
            print(f"error: {wrong!r}", flush=True)


class Proxy:
    """A proxy of a test, as a process of its own; `host`:
    of hosts_rig, where it runs (else here, on loopback)."""

    def __init__(self, to, listen=("127.0.0.1", 0), seed=1, host=None):
        argv = [sys.executable, "-I", "-S", __file__, f"--listen={listen[0]}:{listen[1]}",
                f"--to={to[0]}:{to[1]}", f"--seed={seed}"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = host.popen(argv, **pipes) if host else subprocess.Popen(argv, **pipes)
        said = self.process.stdout.readline()
        assert said.startswith("listening on "), said
        self.address = split_endpoint(said.split()[-1])

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        assert said.startswith("ok"), f"{line}: {said}"
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--to", required=True)
    parser.add_argument("--seed", type=int, default=1)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()

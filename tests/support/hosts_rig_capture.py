"""Writes every frame that passes the bridge br0 of this network namespace to a file:
its length (four bytes), then itself.

Says "ready" when nothing is missed any more, and at its end, which SIGTERM asks for,
how many the kernel had to drop.
"""

import select
import signal
import socket
import struct
import sys

SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_STATISTICS, PACKET_MR_PROMISC = 263, 1, 6, 1
SO_RCVBUFFORCE = 33
ALL_PROTOCOLS = 3
LARGEST = 262144


def main():
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGTERM, lambda *_: None)
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    frames.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 128 << 20)
    frames.bind(("br0", ALL_PROTOCOLS))
    frames.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                      struct.pack("iHH8s", socket.if_nametoindex("br0"), PACKET_MR_PROMISC, 0, b""))
    frames.setblocking(False)
    with open(sys.argv[1], "wb", buffering=1 << 20) as file:
        print("ready", flush=True)
        ending = False
        while True:
            try:
                frame = frames.recv(LARGEST)
                file.write(struct.pack("<I", len(frame)) + frame)
            except BlockingIOError:
                if ending:
                    break
                ending = wake in select.select([frames, wake], [], [])[0]
    _, dropped = struct.unpack("II", frames.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    print("dropped", dropped)


if __name__ == "__main__":
    main()

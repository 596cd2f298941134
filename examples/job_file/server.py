"""A server that adds up: every line is a number, and is answered with the sum of all numbers so far."""

import os
import socketserver
import threading

total = 0.0
lock = threading.Lock()


class Adder(socketserver.StreamRequestHandler):
    def handle(self):
        global total
        for line in self.rfile:
            with lock:
                total += float(line)
                answer = total
            self.wfile.write(f"{answer}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    address = os.environ["POD_IP"], int(os.environ["PADDLE_PORT"])
    with Server(address, Adder) as server:
        print("adding up at", *address, flush=True)
        server.serve_forever()

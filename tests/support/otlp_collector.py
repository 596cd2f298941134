"""A collector that decodes what comes to it by the published messages of OTLP, and prints a line of JSON for
each request: ["metrics"|"traces", message]. Its first line is its port."""

import gzip
import http.server
import json

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MESSAGES = {"metrics": ExportMetricsServiceRequest, "traces": ExportTraceServiceRequest}


class Collector(http.server.BaseHTTPRequestHandler):

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        kind = self.path.rpartition("/")[2]
        message = MESSAGES[kind]()
        message.ParseFromString(body)
        print(json.dumps([kind, MessageToDict(message)]), flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()

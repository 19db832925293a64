"""A small DNS server for tests: name_server.py ADDRESS FILE

Each line of the file has a name and its address. The server reads the file again for each question,
so names may be added at any time. Names that are not in the file do not exist. No name has an IPv6
address.
"""
import socket
import struct
import sys
from pathlib import Path

A, INTERNET = 1, 1
NO_SUCH_NAME = 3
SECONDS_TO_KEEP = 5


def question(message):
    """Returns the name in the question, the type of the record, and the end of the question."""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels), struct.unpack_from("!H", message, at + 1)[0], at + 5


def answer(message, addresses):
    name, kind, end = question(message)
    address = addresses.get(name.lower())
    record = b""
    if address and kind == A:
        record = struct.pack("!HHHIH", 0xC00C, A, INTERNET, SECONDS_TO_KEEP, 4) + socket.inet_aton(address)
    flags = 0x8580 | (0 if address else NO_SUCH_NAME)
    return message[:2] + struct.pack("!HHHHH", flags, 1, 1 if record else 0, 0, 0) + message[12:end] + record


def main():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], 53))
    print("ready", flush=True)
    while True:
        message, asker = server.recvfrom(4096)
        addresses = dict(line.split() for line in Path(sys.argv[2]).read_text().splitlines())
        server.sendto(answer(message, addresses), asker)


main()

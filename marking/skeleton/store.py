#!/usr/bin/env python3
import os, sys, zlib
from tornpage_mark import ack, issue, ready, serve

def line_of(body):
    return f"{zlib.crc32(body.encode()):08x} {body}\n"

def load(folder):
    log = os.open(f"{folder}/store.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.fsync(os.open(folder, os.O_RDONLY))  # the name of the log
    rows = {}
    ready({"rows": rows})
    for n in range(1, 31):
        issue(n)
        rows[f"key{n % 7}"] = str(n)
        os.write(log, line_of(f"key{n % 7} {n:01200}").encode())  # three sectors
        os.fsync(log)
        ack(n, {"rows": rows})

def recover(folder):
    rows = {}
    for line in open(f"{folder}/store.log", errors="replace"):
        if line != line_of(line[9:-1]):
            break  # torn by the crash: never acknowledged
        key, value = line.split()[1:]
        rows[key] = str(int(value))
    return {"rows": rows}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)

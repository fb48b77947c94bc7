#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packing and verifying move far more than there is memory: peak memory and what stays in the page
cache are bounded. $K3PACK_WIDE may name a checkpoint of the wide preset to use."""

import ctypes
import mmap
import os
import pathlib
import subprocess
import unittest

from k3pack_common import K3PACK, OK, TestCase, run

PEAK_MAX = 1 << 30
CACHE_MAX = 768 << 20


def cached_bytes(path):
    """Bytes of a file that are in the page cache, by mincore(2)."""
    size = path.stat().st_size
    if size == 0:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    resident = ctypes.create_string_buffer(pages)
    with open(path, "rb") as stream:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, stream.fileno(), 0)
        if libc.mincore(at, size, resident) != 0:
            raise OSError(ctypes.get_errno(), "mincore")
        libc.munmap(at, size)
    return sum(byte & 1 for byte in resident.raw) * mmap.PAGESIZE


def drop(path):
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Memory(TestCase):
    def measure(self, *arguments):
        """Peak memory of a run."""
        child = subprocess.Popen([K3PACK, "-q", *map(str, arguments)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        self.assertEqual(status, 0)
        return usage.ru_maxrss * 1024

    def test_bounds(self):
        wide = os.environ.get("K3PACK_WIDE")
        source = pathlib.Path(wide) if wide else self.checkpoint(
            "wide", "--layers", "2", "--experts", "16", "--vocab", "1024")
        shards = list(source.glob("*.safetensors"))
        target = self.folder / "pack"
        for path in shards:
            drop(path)
        peak = self.measure(source, target)
        files = shards + [target / name for name in ("k3.trunk", "k3.experts")]
        cached = sum(map(cached_bytes, files))
        print(f"pack: peak {peak >> 20} MiB, page cache {cached >> 20} MiB")
        self.assertLess(peak, PEAK_MAX)
        self.assertLess(cached, CACHE_MAX)
        for path in files:
            drop(path)
        peak = self.measure("--verify", target)
        cached = sum(map(cached_bytes, files))
        print(f"verify: peak {peak >> 20} MiB, page cache {cached >> 20} MiB")
        self.assertLess(peak, PEAK_MAX)
        self.assertLess(cached, 64 << 20)
        self.assertEqual(run("--verify", "--quick", target).returncode, OK)


if __name__ == "__main__":
    unittest.main()

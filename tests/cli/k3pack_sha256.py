#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""k3pack --sha256: shards are held against a manifest in the pass that packs them."""

import hashlib
import json
import os
import shutil
import subprocess
import unittest

from k3pack_common import (DATA, NO_INPUT, OK, TestCase, digests, find_tensor, flip, read_pack, run)


class Manifest(TestCase):
    def setUp(self):
        super().setUp()
        self.source = self.own_checkpoint("tiny")
        self.target = self.folder / "pack"
        self.manifest = self.folder / "SHA256SUMS"
        self.shards = sorted(path.name for path in self.source.glob("*.safetensors"))
        done = subprocess.run(["sha256sum", *sorted(os.listdir(self.source))], cwd=self.source,
                              capture_output=True, check=True)
        self.manifest.write_bytes(done.stdout)

    def sha256(self, name):
        return hashlib.sha256((self.source / name).read_bytes()).hexdigest()

    def pack(self, status=OK, *options):
        return self.expect(status, "-q", *options, "--sha256", self.manifest, self.source,
                           self.target)

    def listing(self):
        return json.loads(run("--list", "--json", self.target).stdout)

    def test_recorded(self):
        self.pack()
        for shard in self.listing()["shards"]:
            self.assertEqual(shard["sha256"], self.sha256(shard["name"]))
        done = read_pack("check", self.target)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect(OK, "--verify", self.target)

    def test_data_are_the_same_with_and_without(self):
        self.pack()
        plain = super().pack("tiny")
        self.assertEqual(digests(self.target, ("k3.trunk", "k3.experts")),
                         digests(plain, ("k3.trunk", "k3.experts")))

    def test_forms(self):
        listed = {name: self.sha256(name) for name in self.shards}
        sizes = {name: (self.source / name).stat().st_size for name in self.shards}
        forms = {
            "json": json.dumps([{"path": n, "size": sizes[n], "sha256": listed[n]}
                                for n in self.shards]),
            "hub": json.dumps([{"type": "directory", "path": "x"},
                               {"type": "file", "path": "README.md", "size": 3, "oid": "ab"},
                               *({"type": "file", "path": f"a/{n}", "size": sizes[n], "oid": "cd",
                                  "lfs": {"oid": listed[n], "size": sizes[n]}}
                                 for n in self.shards)]),
            "binary, CRLF": "".join(f"{listed[n].upper()} *./{n}\r\n" for n in self.shards),
            "no newline at the end": "\n".join(f"{listed[n]}  {n}" for n in self.shards),
        }
        for form, text in forms.items():
            with self.subTest(form=form):
                self.manifest.write_text(text, newline="")
                self.pack()
                shutil.rmtree(self.target)

    def test_mismatch_then_replaced(self):
        """The shard is named with both digests; the work before it is kept."""
        name = self.shards[5]
        good = (self.source / name).read_bytes()
        flip(self.source / name, len(good) - 1, 1)
        text = self.expect_error(DATA, "-q", "--sha256", self.manifest, self.source, self.target,
                                 says=[name, hashlib.sha256(good).hexdigest(), self.sha256(name)])
        self.assertIn("resume", text)
        self.assert_no_pack(self.target)
        self.expect_error(DATA, "-q", "--sha256", self.manifest, self.source, self.target,
                          says=[name])
        (self.source / name).write_bytes(good)
        report = json.loads(self.pack(OK, "--json").stdout)
        self.assertEqual(report["resumed"]["shards"], 5)
        fresh = self.folder / "fresh"
        self.expect(OK, "-q", "--sha256", self.manifest, self.source, fresh)
        self.assertEqual(digests(self.target), digests(fresh))

    def test_option_changed_between_runs(self):
        name = self.shards[5]
        good = (self.source / name).read_bytes()
        flip(self.source / name, len(good) - 1, 1)
        self.pack(DATA)
        (self.source / name).write_bytes(good)
        self.expect_error(DATA, "-q", self.source, self.target, says=["begun with --sha256"])
        lines = self.manifest.read_text().splitlines()
        first = next(i for i, line in enumerate(lines) if self.shards[0] in line)
        lines[first] = "0" * 64 + lines[first][64:]
        self.manifest.write_text("\n".join(lines))
        self.expect_error(DATA, "-q", "--sha256", self.manifest, self.source, self.target,
                          says=["already packed", self.shards[0], "--restart"])

    def test_small_files(self):
        with open(self.source / "generation_config.json", "a", encoding="ascii") as stream:
            stream.write(" ")
        self.expect_error(DATA, "-q", "--sha256", self.manifest, self.source, self.target,
                          says=["generation_config.json"])

    def test_all_problems_before_the_first_byte(self):
        lines = [line for line in self.manifest.read_text().splitlines()
                 if self.shards[2] not in line and self.shards[7] not in line]
        lines.append("0" * 64 + "  model-99999-of-99999.safetensors")
        self.manifest.write_text("\n".join(lines))
        self.expect_error(DATA, "-q", "--sha256", self.manifest, self.source, self.target,
                          says=[self.shards[2], self.shards[7], "model-99999"])
        self.assertFalse(self.target.exists())

    def test_size(self):
        entries = [{"path": n, "size": 5, "sha256": self.sha256(n)} for n in self.shards]
        self.manifest.write_text(json.dumps(entries))
        self.expect_error(DATA, "-q", "--sha256", self.manifest, self.source, self.target,
                          says=["says 5"])

    def test_bad_manifests(self):
        for text in ("", "[]", "{}", "[1]", '[{"path": 3}]', '[{"path": "x", "sha256": "zz"}]',
                     "abc  x", "0" * 64, "0" * 64 + " x", "z" * 64 + "  x", "[" * 100,
                     "0" * 64 + "  x\n" + "1" * 64 + "  x", '[{"path": "", "sha256": "%s"}]'
                     % ("0" * 64), '[{"path": "x", "size": -1, "sha256": "%s"}]' % ("0" * 64)):
            with self.subTest(text=text):
                self.manifest.write_text(text)
                self.expect_error(DATA, "-q", "--sha256", self.manifest, self.source, self.target)
        self.manifest.unlink()
        self.expect_error(NO_INPUT, "-q", "--sha256", self.manifest, self.source, self.target)


if __name__ == "__main__":
    unittest.main()

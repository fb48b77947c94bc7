#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line of k3pack: help, usage errors, exit statuses, output streams."""

import json
import re
import subprocess
import unittest

from k3pack_common import (CANT_CREATE, DATA, IO, K3PACK, NO_INPUT, OK, ROOT, USAGE, TestCase,
                           flip, run)


class CommandLine(TestCase):
    def test_help(self):
        for option in ("--help", "-h"):
            done = self.expect(OK, option)
            self.assertEqual(done.stderr, b"")
            lines = done.stdout.decode().splitlines()
            self.assertLessEqual(max(map(len, lines)), 80)
            for word in ("Usage:", "Examples:", "Exit status:", "--restart", "--against"):
                self.assertIn(word, done.stdout.decode())

    def test_man_page_and_help_agree(self):
        manual = (ROOT / "docs/man/k3pack.1").read_text().replace("\\-", "-")
        help_text = run("--help").stdout.decode()
        for option in set(re.findall(r"--[a-z]+", help_text)):
            self.assertIn(option, manual)
        for status in re.findall(r"(?<!\d)(6\d|7\d)(?= )", help_text.split("Exit status:")[1]):
            self.assertIn(status, manual)

    def test_version(self):
        self.assertRegex(self.expect(OK, "--version").stdout.decode(), r"^k3pack \d+\.\d+\.\d+\n$")

    def test_usage_errors(self):
        for arguments in ((), ("one",), ("a", "b", "c"), ("--plan",), ("--plan", "a", "b"),
                          ("--verify",), ("--verify", "a", "b"), ("--export", "a"), ("--list",),
                          ("--verify", "--list", "a"), ("--bogus", "a", "b"), ("-x", "a", "b"),
                          ("--quick", "a", "b"), ("--restart", "--verify", "a"),
                          ("--list", "a", "--against", "b"), ("--verify", "a", "--against"),
                          ("--verify", "--quick", "a", "--against", "b"), ("", "b"),
                          ("--json=yes", "--list", "a")):
            with self.subTest(arguments=arguments):
                text = self.expect_error(USAGE, *arguments, says=["k3pack --help"])
                self.assertEqual(len(text.splitlines()), 2, text)
                self.assertTrue(all(line.startswith("k3pack: ") for line in text.splitlines()))

    def test_statuses(self):
        damaged = self.own_pack()
        flip(damaged / "k3.index", 4096)
        for status, arguments in ((OK, ("--verify", self.pack())),
                                  (DATA, ("--verify", damaged)),
                                  (DATA, ("--list", damaged)),
                                  (DATA, ("--export", damaged, self.folder / "out")),
                                  (NO_INPUT, ("--verify", self.folder / "none")),
                                  (NO_INPUT, ("--list", self.checkpoint())),
                                  (NO_INPUT, (self.folder / "none", self.folder / "pack")),
                                  (CANT_CREATE, (self.checkpoint(), "/proc/k3")),
                                  (CANT_CREATE, ("--export", self.pack(), self.checkpoint()))):
            with self.subTest(status=status, arguments=arguments):
                self.expect(status, *arguments)

    def test_full_stdout(self):
        for arguments in (("--list",), ("--list", "--json"), ("--verify",),
                          ("--verify", "--json")):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([K3PACK, *arguments, str(self.pack())], stdout=full,
                                      stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, IO, arguments)

    def test_streams(self):
        """The product on stdout, everything else on stderr; -q says nothing."""
        done = self.expect(OK, self.checkpoint("tiny"), self.folder / "pack")
        self.assertRegex(done.stdout.decode(), r"^[0-9a-f]{32}\n$")
        self.assertIn("vision tensors", done.stderr.decode())
        self.assertNotIn("\x1b", done.stderr.decode())
        done = self.expect(OK, "-q", self.checkpoint("tiny"), self.folder / "quiet")
        self.assertEqual(done.stderr, b"")

    def test_json_is_one_object(self):
        target = self.folder / "pack"
        for schema, arguments in (("pack", (self.checkpoint(), target)),
                                  ("plan", ("--plan", self.checkpoint())),
                                  ("verify", ("--verify", target)),
                                  ("list", ("--list", target)),
                                  ("export", ("--export", target, self.folder / "out"))):
            done = self.expect(OK, "--json", *arguments)
            self.assertEqual(json.loads(done.stdout)["schema"], f"k3pack.{schema}/1")

    def test_pack_report(self):
        target = self.folder / "pack"
        report = json.loads(self.expect(OK, "--json", self.checkpoint(), target).stdout)
        self.assertFalse(report["was_packed"])
        self.assertEqual(report["files"], {name: (target / name).stat().st_size for name in
                                           ("k3.index", "k3.trunk", "k3.experts")})
        again = json.loads(self.expect(OK, "--json", self.checkpoint(), target).stdout)
        self.assertTrue(again["was_packed"])
        self.assertEqual(again["pack_id"], report["pack_id"])

    def test_verify_is_read_only(self):
        folder = self.own_pack()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        try:
            self.expect(OK, "--verify", folder, "--against", self.checkpoint())
        finally:
            folder.chmod(0o755)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading a part of a pack (--layers, --experts, --sample), --jobs, and events (--json-lines)."""

import json
import unittest

from k3pack_common import DATA, OK, USAGE, TestCase, flip, run


def events_of(done):
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


class Partial(TestCase):
    def setUp(self):
        super().setUp()
        self.pack_dir = self.own_pack("tiny")
        self.list = json.loads(run("--list", "--json", self.pack_dir).stdout)
        self.layout = self.list["expert_layout"]

    def verify(self, status, *options):
        done = self.expect(status, "--verify", "--json", *options, self.pack_dir)
        return json.loads(done.stdout)

    def flip_layer(self, layer):
        flip(self.pack_dir / "k3.trunk", self.list["trunk_extents"][layer]["file_offset"] + 70)

    def flip_expert(self, layer, expert):
        number = (layer - self.layout["first_layer"]) * self.layout["expert_count"] + expert
        flip(self.pack_dir / "k3.experts",
             self.layout["data_offset"] + number * self.layout["stride"] + 99)

    def test_everything_is_not_partial(self):
        report = self.verify(OK)
        self.assertFalse(report["is_partial"])
        self.assertNotIn("scope", report)
        self.assertTrue(self.verify(OK, "--quick")["is_partial"])

    def test_layers(self):
        self.flip_layer(4)
        self.flip_expert(5, 2)
        self.assertEqual(len(self.verify(DATA)["damage"]), 2)
        for layers, found in (("0-3", 0), ("4", 1), ("4-4", 1), ("5-5", 1), ("6-9", 0), ("3-6", 2)):
            with self.subTest(layers=layers):
                report = self.verify(DATA if found else OK, "--layers", layers)
                self.assertEqual(len({(d["layer"], d.get("expert")) for d in report["damage"]}),
                                 found)
                self.assertTrue(report["is_partial"])
                self.assertIn("layers", report["scope"]["text"])
                self.assertLess(report["scope"]["checked_units"], report["scope"]["all_units"])

    def test_experts(self):
        self.flip_layer(4)
        self.flip_expert(5, 2)
        for experts, found in (("5:2", 1), ("5:1", 0), ("5:0-1,6:0-3", 0), ("6:1,5:1-3", 1)):
            with self.subTest(experts=experts):
                report = self.verify(DATA if found else OK, "--experts", experts)
                self.assertEqual(report["checked_blocks"], 0)
                self.assertEqual({d["expert"] for d in report["damage"]}, {2} if found else set())
        report = self.verify(DATA, "--layers", "4", "--experts", "5:1")
        self.assertEqual({d["layer"] for d in report["damage"]}, {4})
        self.assertEqual(report["checked_experts"], 1 + self.layout["expert_count"])

    def test_sample_is_said_to_be_one(self):
        report = self.verify(OK, "--sample", "50%")
        self.assertTrue(0 < report["checked_experts"] < len(self.list["expert_digests"]))
        self.assertEqual(report["scope"]["sample_percent"], 50)
        text = self.expect(OK, "--verify", "--sample", "50", self.pack_dir).stdout.decode()
        self.assertIn("not everything: a random sample of 50 %", text)
        self.assertNotIn("good", text)
        whole = self.verify(OK, "--sample", "100%")
        self.assertEqual(whole["scope"]["checked_units"], whole["scope"]["all_units"])

    def test_what_the_model_does_not_have(self):
        for words in (["--layers", "0-11"], ["--experts", "0:0"], ["--experts", "5:99"],
                      ["--experts", "99:0"]):
            self.expect_error(USAGE, "--verify", *words, self.pack_dir, says=["there is no"])
        for words in (["--layers", "3-1"], ["--layers", "x"], ["--experts", "5"],
                      ["--experts", "5:1,"], ["--sample", "0"], ["--sample", "101%"],
                      ["--sample", "%"], ["--jobs", "0"], ["--jobs", "65"],
                      ["--quick", "--sample", "5%"], ["--json", "--json-lines"]):
            self.expect_error(USAGE, "--verify", *words, self.pack_dir)
        self.expect_error(USAGE, "--list", "--jobs", "2", self.pack_dir)
        self.expect_error(USAGE, "--layers", "1", self.checkpoint(), self.folder / "x")

    def test_jobs_find_the_same_damage_in_the_same_order(self):
        for layer in (1, 4, 7):
            self.flip_layer(layer)
        for expert in range(0, self.layout["expert_count"], 3):
            self.flip_expert(5, expert)
        found = [self.verify(DATA, "--jobs", jobs)["damage"] for jobs in (1, 2, 3, 16)]
        self.assertGreater(len(found[0]), 4)
        for other in found[1:]:
            self.assertEqual(other, found[0])


class Events(TestCase):
    def test_pack(self):
        target = self.folder / "pack"
        checkpoint = self.checkpoint("tiny")
        done = self.expect(OK, "-q", "--json-lines", checkpoint, target)
        events = events_of(done)
        self.assertEqual({e["schema"] for e in events}, {"k3pack.event/1"})
        self.assertEqual((events[0]["event"], events[0]["verb"]), ("start", "pack"))
        self.assertEqual((events[0]["pack"], events[0]["checkpoint"]),
                         (str(target), str(checkpoint)))
        shards = [e["shard"] for e in events if e["event"] == "packed"]
        self.assertEqual(shards, sorted(path.name for path in checkpoint.glob("*.safetensors")))
        progress = [e for e in events if e["event"] == "progress"]
        self.assertGreater(len(progress), 0)
        self.assertLessEqual({"stage", "done_bytes", "total_bytes", "seconds"}, set(progress[0]))
        self.assertEqual(events[-1]["event"], "done")
        self.assertEqual(events[-1]["report"]["schema"], "k3pack.pack/1")
        times = [e["seconds"] for e in events]
        self.assertEqual(times, sorted(times))

    def test_verify(self):
        target = self.own_pack("tiny")
        flip(target / "k3.trunk", 2 << 20)
        flip(target / "k3.experts", 2 << 20)
        events = events_of(self.expect(DATA, "-q", "--verify", "--json-lines", target))
        damage = [e["damage"] for e in events if e["event"] == "damage"]
        self.assertEqual(events[-1]["report"]["damage"], damage)
        self.assertEqual({d["file"] for d in damage}, {"k3.trunk", "k3.experts"})

    def test_failure(self):
        events = events_of(self.expect(66, "-q", "--verify", "--json-lines", self.folder / "none"))
        self.assertEqual([e["event"] for e in events], ["start", "failure"])
        self.assertEqual(events[-1]["error"], "no_input")


if __name__ == "__main__":
    unittest.main()

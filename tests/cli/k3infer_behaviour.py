#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How k3infer behaves towards people: output, records, errors and exit statuses.

usage: k3infer_behaviour.py K3INFER K3PACK SAMPLE_FOLDER [unittest options]
SAMPLE_FOLDER holds checkpoint/ and pack/ of the tiny preset.
"""

import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

K3INFER, K3PACK, SAMPLE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
PACK = SAMPLE / "pack"
CACHE = tempfile.TemporaryDirectory()  # findings of --io auto; never the user's own
os.environ["XDG_CACHE_HOME"] = CACHE.name


def run(*words, pack=PACK, program=K3INFER, **kwargs):
    command = [program, *([str(pack)] if pack else []), *map(str, words)]
    return subprocess.run(command, stdout=kwargs.pop("stdout", subprocess.PIPE),
                          stderr=subprocess.PIPE, timeout=120, **kwargs)


class Case(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def copy_pack(self):
        copy = self.folder / "pack"
        shutil.copytree(PACK, copy)
        return copy

    def fails(self, status, pattern, *words, **kwargs):
        done = run(*words, **kwargs)
        text = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, status, text)
        self.assertRegex(text, pattern)
        self.assertTrue(text.startswith("k3infer: "), text)
        return done


class Output(Case):
    def test_text_alone_on_stdout(self):
        done = run("--ids", "5,6,7", "-n", 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"k3infer", done.stdout)
        self.assertIn(b"generated 8", done.stderr)
        done.stdout.decode("utf-8")
        quiet = run("--ids", "5,6,7", "-n", 8, "-q")
        self.assertEqual(quiet.stderr, b"")
        self.assertEqual(quiet.stdout, done.stdout)

    def test_help_and_version(self):
        done = run("--help", pack=None)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"usage: k3infer", done.stdout)
        done = run("--version", pack=None)
        self.assertRegex(done.stdout, rb"^k3infer \d+\.\d+\.\d+, pack format 1\.0, instruction set \w+\n$")

    def test_records(self):
        logits, ids, stats = (self.folder / name for name in ("l.npy", "ids", "stats.json"))
        done = run("--ids", "5,6,7", "-n", 6, "--logits", logits, "--ids-out", ids, "--stats", stats)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = numpy.load(logits)
        self.assertEqual(rows.dtype, numpy.float32)
        written = [int(i) for i in ids.read_text().split(",")]
        self.assertEqual(len(written), 6)
        self.assertEqual([int(i) for i in rows.argmax(axis=1)], written)
        report = json.loads(stats.read_text())
        self.assertEqual(report["schema"], "k3infer.stats/1")
        self.assertEqual((report["prompt_tokens"], report["generated_tokens"], report["fed_tokens"]),
                         (3, 6, 8))
        self.assertEqual(report["stop_reason"], "max_tokens")
        self.assertGreater(report["trunk_bytes_used"], 0)
        self.assertEqual(report["checked_bytes"] > 0, True)

    def test_all_logits_hold_every_position(self):
        logits = self.folder / "l.npy"
        run("--ids", "5,6,7", "-n", 4, "--logits", logits, "--all-logits")
        self.assertEqual(numpy.load(logits).shape[0], 3 + 4 - 1)
        run("--ids", "5,6,7", "-n", 0, "--logits", logits)
        self.assertEqual(numpy.load(logits).shape[0], 1)

    def test_prompt_text_file_and_stdin_agree(self):
        text = "The capital of \u65e5\u672c is <|open|> \U0001f600"
        file = self.folder / "prompt.txt"
        file.write_text(text)
        one = run("--prompt", text, "-n", 5, "-q")
        two = run("--prompt-file", file, "-n", 5, "-q")
        three = run("--prompt-file", "-", "-n", 5, "-q", input=text.encode())
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertEqual(one.stdout, two.stdout)
        self.assertEqual(one.stdout, three.stdout)

    def test_sampling_repeats_with_its_seed(self):
        options = ("--ids", "5,6,7", "-n", 24, "-q", "--temperature", 1.5, "--top-p", 0.98)
        one, two = run(*options, "--seed", 3), run(*options, "--seed", 3, "--threads", 3)
        other = run(*options, "--seed", 4)
        self.assertEqual(one.stdout, two.stdout)
        self.assertNotEqual(one.stdout, other.stdout)

    def test_stop_text_is_not_printed(self):
        whole = run("--ids", "5,6,7", "-n", 24, "-q").stdout.decode()
        stop = whole[len(whole) // 2:len(whole) // 2 + 3]
        done = run("--ids", "5,6,7", "-n", 24, "--stop", stop)
        self.assertEqual(done.stdout.decode(), whole[:whole.index(stop)])
        self.assertIn(b"stop text", done.stderr)
        # A stop text that only waited for a longer one to be decided is not printed either.
        done = run("--ids", "5,6,7", "-n", 24, "--stop", whole[-3:] + "\x01", "--stop", whole[-2:])
        self.assertEqual(done.stdout.decode(), whole[:whole.index(whole[-2:])])

    def test_both_end_tokens_end_the_run(self):
        """A sampler that may take anything meets an end token soon; which one it was is said."""
        config = json.loads((SAMPLE / "checkpoint" / "config.json").read_text())
        end = config["text_config"]["eos_token_id"]
        seen = set()
        for seed in range(400):
            ids = self.folder / "ids"
            done = run("--ids", "5", "-n", 64, "--temperature", 60, "--seed", seed, "--ids-out", ids)
            written = [int(i) for i in ids.read_text().split(",")]
            self.assertEqual(done.returncode, 0, done.stderr)
            hits = [i for i in written if i in (end, end - 1)]
            if hits:
                self.assertEqual(written.index(hits[0]), len(written) - 1)
                self.assertIn(f"end token {hits[0]}".encode(), done.stderr)
                seen.add(hits[0])
            if len(seen) == 2:
                return
        self.fail(f"only {seen} seen")


class Refusals(Case):
    def test_usage(self):
        for words in ([], ["--prompt", ""], ["--ids", "1", "--prompt", "x"], ["--ids", "1x"]):
            self.fails(64, "--help", *words)
        empty = self.folder / "empty.txt"
        empty.write_bytes(b"")
        self.fails(64, "prompt is empty", "--prompt-file", empty)
        self.fails(64, "prompt is empty", "--prompt-file", os.devnull)
        self.fails(64, "a prompt goes after --prompt", "hello")
        self.fails(64, "need a --temperature above 0", "--ids", "1", "--seed", 3)

    def test_ids_and_context(self):
        self.fails(64, r"token id 99999999 .* does not exist: ids are 0\.\.\d+", "--ids", "99999999")
        self.fails(64, "need a context of 12, --context gives 5", "--ids", "1,2,3", "-n", 10,
                   "--context", 5)

    def test_no_pack(self):
        self.fails(66, "no such folder", "--ids", "1", pack=self.folder / "nowhere")
        self.fails(66, "is not a pack: it has no k3.index", "--ids", "1", pack=self.folder)
        (self.folder / "k3.journal").write_bytes(b"")
        self.fails(66, "not finished; run k3pack again", "--ids", "1", pack=self.folder)

    def test_unreadable_prompt_file(self):
        self.fails(66, "cannot open", "--prompt-file", self.folder / "none")

    def test_outputs_that_cannot_be_made(self):
        missing = self.folder / "no" / "folder"
        for option in ("--logits", "--ids-out", "--stats"):
            self.fails(73, "cannot create", "--ids", "1", "-n", 1, option, missing)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.fails(74, "standard output", "--ids", "5,6,7", "-n", 4, stdout=full)
        self.fails(74, "cannot write", "--ids", "5", "-n", 4, "-q", "--stats", "/dev/full")

    def test_reader_that_goes_away(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        with os.fdopen(write_end, "wb") as gone:
            self.fails(74, "standard output", "--ids", "5,6,7", "-n", 4, stdout=gone)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x10]))


class Damage(Case):
    def listing(self, pack):
        return json.loads(run("--list", "--json", pack, program=K3PACK, pack=None).stdout)

    def test_trunk_block(self):
        pack = self.copy_pack()
        flip(pack / "k3.trunk", self.listing(pack)["trunk_extents"][4]["file_offset"] + 1000)
        done = self.fails(65, r"k3\.trunk': bytes \d+\.\.\d+ \(layer 4\) do not match", "--ids", "1",
                          "-n", 3, pack=pack)
        self.assertEqual(done.stdout, b"")

    def test_damaged_expert_ends_the_run_where_it_is_first_needed(self):
        """What came out before is what an undamaged pack gives; nothing comes after."""
        pack = self.copy_pack()
        layout = self.listing(pack)["expert_layout"]
        whole = run("--ids", "5,6,7", "-n", 24, "-q").stdout
        shown = set()
        for expert in range(layout["expert_count"]):
            at = layout["data_offset"] + expert * layout["stride"] + 77
            flip(pack / "k3.experts", at)
            done = run("--ids", "5,6,7", "-n", 24, "-q", pack=pack)
            flip(pack / "k3.experts", at)
            self.assertTrue(whole.startswith(done.stdout))
            if done.returncode == 0:
                self.assertEqual(done.stdout, whole)  # never selected: the run succeeds
            else:
                self.assertEqual(done.returncode, 65)
                self.assertRegex(done.stderr.decode(), rf"layer {layout['first_layer']} "
                                 rf"expert {expert} .* does not match its digest")
            shown.add(len(done.stdout))
        self.assertIn(0, shown)

    def test_check_off_and_first(self):
        pack = self.copy_pack()
        flip(pack / "k3.trunk", self.listing(pack)["trunk_extents"][4]["file_offset"] + 1000)
        self.fails(65, "layer 4", "--ids", "1", "-n", 1, "--check", "first", pack=pack)
        self.assertEqual(run("--ids", "1", "-n", 1, "-q", "--check", "off", pack=pack).returncode, 0)

    def test_index(self):
        pack = self.copy_pack()
        for offset in (3, 100, 4090, 5000, os.path.getsize(pack / "k3.index") - 10):
            flip(pack / "k3.index", offset)
            self.fails(65, r"k3\.index", "--ids", "1", "-n", 1, pack=pack)
            flip(pack / "k3.index", offset)

    def test_cut_and_foreign_files(self):
        pack = self.copy_pack()
        size = os.path.getsize(pack / "k3.trunk")
        os.truncate(pack / "k3.trunk", size - 1)
        self.fails(65, rf"k3\.trunk: has {size - 1} bytes, must have {size}", "--ids", "1", pack=pack)
        os.remove(pack / "k3.trunk")
        self.fails(66, r"k3\.trunk", "--ids", "1", pack=pack)
        shutil.copy(pack / "k3.experts", pack / "k3.trunk")
        self.fails(65, "holds another file of a pack", "--ids", "1", pack=pack)

    def test_newer_version(self):
        pack = self.copy_pack()
        with open(pack / "k3.index", "r+b") as file:
            file.seek(8)
            file.write(b"\x02\x00")
        self.fails(69, "version 2", "--ids", "1", pack=pack)

    def test_file_that_shrinks_while_in_use(self):
        """SIGBUS on a mapped page: a message with file and offset, exit 74, no token after it."""
        pack = self.copy_pack()
        process = subprocess.Popen(
            [K3INFER, str(pack), "--ids", "5,6,7", "-n", "100000", "--check", "off", "-q",
             "--temperature", "0.5", "--stop", "\u0000never"[1:]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)  # it has begun
        os.truncate(pack / "k3.trunk", 4096)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 74, errors)
        self.assertRegex(errors.decode(), r"k3\.trunk' (at byte \d+: the file shrank|ends at byte)")

    def test_streamed_file_that_shrinks(self):
        """The same where input threads meet it first, for every way of reading."""
        for io, name in itertools.product(("mmap", "read", "direct"), ("k3.trunk", "k3.experts")):
            pack = self.copy_pack()
            process = subprocess.Popen(
                [K3INFER, str(pack), "--ids", "5,6,7", "-n", "100", "--ram", "12MiB", "--io", io,
                 "-q", "--temperature", "0.5"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.read(1)
            os.truncate(pack / name, 4096)
            text, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 74, (io, name, errors))
            self.assertRegex(errors.decode(), rf"{name}' (at byte \d+: the file shrank|ends at byte)")
            shutil.rmtree(pack)


class Budget(Case):
    """--ram, --preset, --plan."""

    def plan(self, *words):
        report = self.folder / "plan.json"
        done = run("--plan", "--stats", report, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode(), json.loads(report.read_text())["plan"]

    def test_plan_needs_no_prompt_and_adds_up(self):
        text, plan = self.plan("--ram", "100MiB")
        self.assertIn("memory budget 100 MiB", text)
        parts = ("base_bytes", "state_bytes", "latent_bytes", "scratch_bytes", "logit_bytes",
                 "page_table_bytes", "window_bytes", "expert_slots_bytes", "pinned_trunk_bytes",
                 "unused_bytes")
        self.assertEqual(sum(plan[part] for part in parts), 100 << 20)
        self.assertEqual(plan["total_bytes"], 100 << 20)

    def test_floor_is_named_and_works(self):
        done = self.fails(78, r"--ram \d+MiB works", "--ids", "5,6,7", "-n", 4, "--ram", "1MiB")
        works = re.search(rb"--ram (\d+MiB) works", done.stderr).group(1).decode()
        self.assertEqual(run("--ids", "5,6,7", "-n", 4, "--ram", works, "-q").returncode, 0)
        below = f"{int(works[:-3]) - 1}MiB"
        self.fails(78, f"--ram {works} works", "--ids", "5,6,7", "-n", 4, "--ram", below)

    def test_nonsense(self):
        for size in ("0", "-1", "8 GB please", "8gb", "1e9", "", "nan", "99999999999999999999"):
            self.fails(64, "--ram", "--ids", "1", "--ram", size)
        self.fails(64, "none of laptop", "--ids", "1", "--preset", "phone")
        self.fails(64, "none of soft, hard", "--ids", "1", "--pin", "firm")
        self.fails(64, "none of auto, mmap, read, direct", "--ids", "1", "--io", "uring")
        for size in ("100 MB", "100MB", "100M", "100MiB", "104857600"):
            self.assertEqual(run("--ids", "1", "-n", 1, "-q", "--ram", size).returncode, 0)

    def test_more_than_the_machine_has(self):
        done = self.fails(78, "more than the .* MiB that this process may use", "--ids", "1", "--ram",
                          "900TiB")
        self.assertRegex(done.stderr, rb"--ram \d+MiB leaves")

    def test_context_that_does_not_fit(self):
        self.fails(78, r"--ram \d+MiB works", "--ids", "1", "--context", 4000, "--ram", "10MiB")

    def test_preset_is_clipped_with_a_warning(self):
        done = run("--plan", "--preset", "max")
        self.assertEqual(done.returncode, 0)
        with open("/proc/meminfo") as file:
            kib = int(file.readline().split()[1])
        if kib * 1024 < 224e9:
            self.assertIn(b"is for a larger machine", done.stderr)

    def test_lock_limit_is_no_obstacle(self):
        """--pin hard with nothing to lock: same text, one warning at most."""
        import resource
        plain = run("--ids", "5,6,7", "-n", 8, "-q")
        done = run("--ids", "5,6,7", "-n", 8, "--pin", "hard",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain.stdout)

    def test_plan_says_how_weights_come_in(self):
        for way in ("mmap", "read", "direct"):
            text, plan = self.plan("--io", way)
            self.assertEqual((plan["io"], plan["io_reason"]), (way, "as asked for"))
        _, plan = self.plan()
        self.assertIn(plan["io"], ("mmap", "direct"))

    def test_finding_is_kept_and_need_not_be(self):
        """A cache folder that cannot be written, or holds rubbish, changes nothing."""
        folder = self.folder / "cache"
        (folder / "k3infer").mkdir(parents=True)
        report = self.folder / "plan.json"
        run("--plan", "--stats", report)
        pack_id = json.loads(report.read_text())["pack_id"]
        (folder / "k3infer" / f"io-{pack_id}").write_bytes(b"\xff rubbish \0")
        for cache in (folder, pathlib.Path("/proc/none"), pathlib.Path("relative")):
            done = run("--ids", "5", "-n", 1, "-q", env={**os.environ, "XDG_CACHE_HOME": str(cache)})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_two_processes_on_one_pack(self):
        words = [K3INFER, str(PACK), "--ids", "5,6,7", "-n", "60", "-q", "--ram", "12MiB"]
        both = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
        texts = [process.communicate(timeout=120)[0] for process in both]
        self.assertEqual([process.returncode for process in both], [0, 0])
        self.assertEqual(texts[0], texts[1])

    def test_pack_deleted_while_in_use(self):
        """An open file stays whole: the run ends well."""
        pack = self.copy_pack()
        process = subprocess.Popen([K3INFER, str(pack), "--ids", "5,6,7", "-n", "60", "-q", "--ram",
                                    "12MiB"], stdout=subprocess.PIPE, bufsize=0)
        first = process.stdout.read(1)
        shutil.rmtree(pack)
        rest = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, 0)
        self.assertEqual(first + rest, run("--ids", "5,6,7", "-n", 60, "-q").stdout)


def set_tensor(checkpoint, name, value):
    """Every bf16 of a tensor becomes `value` (its bits)."""
    for shard in checkpoint.glob("*.safetensors"):
        with open(shard, "r+b") as file:
            length = int.from_bytes(file.read(8), "little")
            entry = json.loads(file.read(length)).get(name)
            if entry:
                begin, end = entry["data_offsets"]
                file.seek(8 + length + begin)
                file.write(value.to_bytes(2, "little") * ((end - begin) // 2))
                return
    raise KeyError(name)


class Numbers(Case):
    def test_layer_that_is_not_finite_is_named(self):
        """Finite weights can still overflow: the layer is named and no token comes out."""
        checkpoint, pack = self.folder / "checkpoint", self.folder / "pack"
        shutil.copytree(SAMPLE / "checkpoint", checkpoint)
        set_tensor(checkpoint, "language_model.model.layers.4.post_attention_layernorm.weight",
                   0x7F7F)
        packed = run(checkpoint, pack, program=K3PACK, pack=None)
        self.assertEqual(packed.returncode, 0, packed.stderr)
        done = self.fails(65, r"layer 4: the residual of position 0 is not finite", "--ids", "5,6",
                          "-n", 3, pack=pack)
        self.assertEqual(done.stdout, b"")


class Signals(Case):
    def test_interrupt_while_the_prompt_is_read(self):
        process = subprocess.Popen([K3INFER, str(PACK), "--prompt-file", "-"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdin.write(b"so far")
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 130)
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()

    def test_file_size_limit_is_an_error(self):
        import resource
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        self.fails(74, "cannot write", "--ids", "5,6,7", "-n", 8, "--all-logits", "--logits",
                   self.folder / "l.npy", preexec_fn=limit)

    def test_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [K3INFER, str(PACK), "--ids", "5,6,7", "-n", "1000000", "--temperature", "0.5"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            first = process.stdout.read(1)
            start = time.monotonic()
            process.send_signal(number)
            rest, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + number, errors)
            self.assertLess(time.monotonic() - start, 5)
            self.assertIn(b"stopped", errors)
            (first + rest).decode("utf-8")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)

"""tools/check/abi_history.py finds a change planted in the history of a copied tree, and leaves unreleased versions alone."""
import shutil
import unittest

from planted_test import ROOT, Planted, check

TYPES, SPACE = "abi/include/tenon/types.h", "double flops, bytes; } tn_cost;"
HISTORY = "abi/history/versions"


class AbiHistory(Planted):
    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "abi", self.root / "abi")
        # A history of its own, so that these tests do not depend on what has been released.
        shutil.rmtree(self.root / "abi/history")
        self.version = self.now()
        self.write(HISTORY, f"{self.version} unreleased\n")
        self.assertEqual(check("abi_lock.py", "--root", self.root, "--update")[0], 0)

    def run_check(self, *args):
        return check("abi_history.py", "--root", self.root, *args)

    def passes(self, *args):
        code, output = self.run_check(*args)
        self.assertEqual(code, 0, output)

    def now(self):
        text = (self.root / TYPES).read_text()
        at = text.index("TN_ABI(", text.index("#define TN_ABI_CURRENT"))
        return text[at + 7: text.index(")", at)].replace(", ", ".")

    def set_now(self, version):
        self.edit(TYPES, f"TN_ABI({self.now().replace('.', ', ')}) /*", f"TN_ABI({version.replace('.', ', ')}) /*")

    def release(self, version):
        """Makes `version` the current one and releases it, whatever the tree's own is."""
        self.set_now(version)
        self.write(HISTORY, f"{version} unreleased\n")
        self.assertEqual(check("abi_lock.py", "--root", self.root, "--update")[0], 0)
        if not version.startswith("0."):
            (self.root / f"abi/lock/v{version[0]}.lock").write_text((self.root / "abi/lock/v0.lock").read_text())
        self.passes("--release", version)

    def add_field(self):
        self.edit(TYPES, SPACE, SPACE.replace("; }", "; uint64_t extra; }"))

    def break_field(self):
        self.edit(TYPES, SPACE, SPACE.replace("flops, bytes", "bytes, flops"))

    def test_passes_additions_and_comments_while_the_version_is_unreleased(self):
        self.add_field()
        self.edit(TYPES, "#define TENON_TYPES_H", "#define TENON_TYPES_H /* a comment */")
        self.passes()

    def test_compares_an_unreleased_version_with_its_lock(self):
        self.break_field()
        self.expect(self.run_check(), "abi/lock/v0.lock: field tn_cost")
        self.assertEqual(check("abi_lock.py", "--root", self.root, "--update")[0], 0)
        self.passes()

    def test_releases_a_version_once_with_sums_that_sha256sum_knows(self):
        self.release("0.1")
        self.passes()
        self.assertEqual((self.root / HISTORY).read_text(), "0.1 released\n")
        self.assertIn("  tenon/plugin.h\n", (self.root / "abi/history/0.1/SHA256SUMS").read_text())
        self.expect(self.run_check("--release", "0.1"), "0.1 cannot be released")

    def test_releases_nothing_that_is_not_current_or_not_in_step_with_its_lock(self):
        self.expect(self.run_check("--release", "9.9"), "9.9 cannot be released")
        self.add_field()
        self.expect(self.run_check("--release", self.version), "lacks additions")

    def test_finds_a_released_header_that_was_changed_or_is_gone_and_one_too_many(self):
        self.release("0.1")
        self.edit("abi/history/0.1/tenon/types.h", "LP64", "LP 64")
        (self.root / "abi/history/0.1/tenon/ops.h").unlink()
        self.write("abi/history/0.1/tenon/more.h", "")
        self.expect(self.run_check(), "abi/history/0.1/tenon/types.h: was released and is changed", "tenon/ops.h: was released and is gone",
                    "tenon/more.h: was not released")

    def test_finds_a_changed_lock_of_a_released_version_and_missing_sums(self):
        self.release("0.1")
        self.edit("abi/history/0.1/layout.lock", "struct tn_attr", "struct tn_attribute")
        self.expect(self.run_check(), "layout.lock: was released and is changed")
        (self.root / "abi/history/0.1/SHA256SUMS").unlink()
        self.expect(self.run_check(), "SHA256SUMS is missing")

    def test_finds_an_addition_to_a_version_that_is_out(self):
        self.release("0.1")
        self.add_field()
        self.expect(self.run_check(), "field tn_cost.extra was added: raise TN_ABI_CURRENT")

    def test_lets_the_next_minor_add(self):
        self.release("1.0")
        self.set_now("1.1")
        self.write(HISTORY, "1.0 released\n1.1 unreleased\n")
        self.add_field()
        self.passes()

    def release_then_break(self, old, new):
        """Releases `old`; the headers become `new`, with a break that the fresh lock has taken in."""
        self.release(old)
        self.set_now(new)
        self.write(HISTORY, f"{old} released\n{new} unreleased\n")
        self.break_field()
        self.assertEqual(check("abi_lock.py", "--root", self.root, "--update")[0], 0)
        if not new.startswith("0."):
            (self.root / f"abi/lock/v{new[0]}.lock").write_text((self.root / "abi/lock/v0.lock").read_text())
        return self.run_check()

    def test_lets_no_minor_break_the_major_even_with_a_fresh_lock(self):
        self.expect(self.release_then_break("1.0", "1.1"), "released 1.0: field tn_cost")

    def test_lets_a_minor_before_1_0_break(self):
        code, output = self.release_then_break("0.1", "0.2")
        self.assertEqual(code, 0, output)

    def test_lets_a_new_major_break(self):
        code, output = self.release_then_break("1.4", "2.0")
        self.assertEqual(code, 0, output)

    def test_finds_a_current_version_that_is_not_listed(self):
        self.set_now("0.7")
        self.expect(self.run_check(), "TN_ABI_CURRENT is 0.7: add a line for it")

    def test_finds_lists_out_of_order_and_folders_without_a_line(self):
        self.release("0.1")
        for text, words in (("0.2 unreleased\n0.1 released\n", "ascending order"), ("0.0 unreleased\n0.1 released\n", "0.0 is unreleased"),
                            ("0.1 out\n", '"0.1 out"'), ("0.1 unreleased\n", "abi/history/0.1: a folder")):
            with self.subTest(text=text):
                self.write(HISTORY, text)
                self.expect(self.run_check(), words)


if __name__ == "__main__":
    unittest.main()

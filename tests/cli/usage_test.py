"""Help, colours, exit codes, and what goes where."""
import os
import pty
import subprocess
import unittest

from command import TENON, Case, tenon

COMMANDS = ["doctor", "devices", "caps", "plugins", "ops", "why", "explain", "bench"]


def on_a_terminal(*args, env):
    """What the command prints when stdout is a terminal."""
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    child = subprocess.Popen([str(TENON), *args], stdout=theirs, stderr=subprocess.PIPE, env={**clean, "TERM": "xterm", **env})
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 65536):
            text += chunk
    except OSError:  # the terminal's other side is closed
        pass
    child.communicate()
    os.close(ours)
    return text.decode()


class Help(Case):
    def test_every_command_has_examples_and_exit_codes(self):
        overview = tenon("--help").stdout
        for name in COMMANDS:
            done = tenon(name, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"Examples:\n  tenon {name}", done.stdout)
            self.assertIn("Exit codes: 0 done, 1 failed, 2 usage, 3", done.stdout)
            self.assertIn("--json", done.stdout)
            self.assertIn(f"  {name}", overview)

    def test_version(self):
        done = tenon("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^tenon \d+\.\d+\.\d+\n$")


class Usage(Case):
    def test_no_command_shows_help_on_stderr(self):
        done = tenon()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("doctor", done.stderr)

    def test_an_unknown_command_gets_a_suggestion(self):
        self.assert_error(tenon("devcies"), 2, "TN-CLI-001", 'no command is called "devcies"', "tenon devices")

    def test_an_unknown_option_is_refused(self):
        self.assert_error(tenon("devices", "--jsno"), 2, "TN-CLI-002", "--jsno", "tenon devices --help")

    def test_values_outside_their_choices_are_refused(self):
        self.assert_error(tenon("why", "relu", "f32[2]", "--policy", "often"), 2, "TN-CLI-002", "often")
        self.assert_error(tenon("why", "relu", "f32[2]", "--threads", "-3"), 2, "TN-CLI-002", "threads")

    def test_missing_words_are_named(self):
        self.assert_error(tenon("why"), 2, "TN-CLI-002", "CALL")


class Output(Case):
    def test_colours_only_on_a_terminal_without_no_color(self):
        self.assertIn("\033[", on_a_terminal("plugins", env={}))
        self.assertNotIn("\033[", on_a_terminal("plugins", env={"NO_COLOR": "1"}))
        self.assertNotIn("\033[", on_a_terminal("plugins", env={"TERM": "dumb"}))

    def test_an_empty_no_color_counts_as_unset(self):
        self.assertIn("\033[", on_a_terminal("plugins", env={"NO_COLOR": ""}))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            self.assert_error(tenon("ops", stdout=full), 1, "TN-CLI-010", "No space left")

    def test_a_reader_that_goes_away_is_none(self):
        child = subprocess.Popen([str(TENON), "ops", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.read(10)
        child.stdout.close()
        self.assertEqual(child.stderr.read(), b"")
        child.stderr.close()
        child.wait()


if __name__ == "__main__":
    unittest.main()

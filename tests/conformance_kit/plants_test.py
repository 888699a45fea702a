"""One fault planted in the simulated accelerator makes exactly the level fail that looks for it."""
import os
import pathlib
import unittest

from kit import conformance, failed_levels, failures

PLANTS = pathlib.Path(os.environ["TENON_PLANTS"])


class APlantedFault(unittest.TestCase):
    def fails_only(self, plant, level, *words):
        code, report, _ = conformance("--plugin", PLANTS / f"libsim_{plant}.so", "--level", 6, "--config", "sim.memory_bytes=268435456")
        self.assertEqual(failed_levels(report), [level], failures(report))
        self.assertEqual(code, 1)
        self.assertFalse(report["passed"])
        self.assertEqual(report["reached"], level - 1)
        for word in words:
            self.assertIn(word, failures(report))

    def test_a_wrong_result_fails_numerics(self):
        self.fails_only("WrongResult", 3, "nan")

    def test_a_dishonest_supports_fails_honesty_with_a_small_call(self):
        self.fails_only("DishonestSupports", 4, "is accepted, but prepare fails", "reduce ", "--attr axes=")

    def test_supports_that_takes_what_constraints_refuse_fails_honesty_with_a_small_call(self):
        self.fails_only("NarrowConstraints", 4, "is accepted by supports(), though its row refuses it: constraint 2 (dtype)", "reduce ")

    def test_a_missing_barrier_fails_asynchrony(self):
        self.fails_only("MissingBarrier", 5, "the wait is no barrier")

    def test_a_leaked_buffer_fails_unload(self):
        self.fails_only("LeakedBuffer", 6, "the heap grew by")


if __name__ == "__main__":
    unittest.main()

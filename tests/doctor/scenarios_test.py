"""`tenon doctor` on machines that have drivers, lack them, or have bad ones. docs/doctor.md shows the same runs."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

from machine import LIBRARIES, NOBODY, NODES, OVERLAY, TENON, Doctor, namespaces, no_gpu, nodes, overlays, real_drivers, unprivileged

ROOT = pathlib.Path(__file__).resolve().parents[2]
HELPER = TENON.parent.parent / "libexec/tenon/tenon-drivers"
WITHOUT = OVERLAY + f"rm -f {LIBRARIES}/libOpenCL.so* {LIBRARIES}/libvulkan.so* {LIBRARIES}/libcuda.so* {LIBRARIES}/libamdhip64.so*\n" + """
for d in /etc/OpenCL /etc/vulkan /usr/share/vulkan /sys/bus/pci/devices; do [ ! -d $d ] || mount -t tmpfs none $d; done
"""
PLAIN = "for d in /etc/OpenCL /etc/vulkan /usr/share/vulkan; do [ ! -d $d ] || mount -t tmpfs none $d; done\n"


def page_matcher():
    """The comparison that other pages are checked by: three dots stand for any lines, or for any text of a line."""
    spec = importlib.util.spec_from_file_location("snippets", ROOT / "tools/check/snippets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.matches


PAGE = (ROOT / "docs/doctor.md").read_text()
BLOCKS = dict(re.findall(r"^<!-- (\w+) -->\n```text\n(.*?)^```$", PAGE, re.M | re.S))


class Scenarios(Doctor):
    """Each method scene_NAME is one machine, and gives the text that is shown there; docs/doctor.md has a block for each."""

    def scene(self, name):
        """Goes there, and compares with the page: the block below `<!-- NAME -->` is what that machine shows."""
        output = getattr(self, "scene_" + name)()
        self.assertTrue(page_matcher()("...\n" + BLOCKS[name] + "...\n", output), f"the page shows\n{BLOCKS[name]}\nbut it is\n{output}")

    @real_drivers
    def scene_pocl_and_lavapipe(self):
        return self.doctor()

    @overlays
    def scene_neither(self):
        return self.doctor(before=WITHOUT)

    @no_gpu
    def scene_library_without_device(self):
        self.fake("CUDA", "libcuda.so.1", "-DINIT=100")
        return self.doctor(env=self.environment(LD_LIBRARY_PATH=self.home / "lib"))

    @nodes
    @unprivileged
    def scene_no_permission(self):
        make = NODES + "mknod -m 660 /dev/dri/renderD128 c 226 128; chgrp video /dev/dri/renderD128\n"
        return self.doctor(before=make, wrap=[*NOBODY, "env", "-u", "HOME"])

    @nodes
    def scene_node_without_device(self):
        return self.doctor(before=NODES + "mknod -m 666 /dev/dri/renderD128 c 10 239; mknod -m 666 /dev/nvidiactl c 250 255\n")

    @namespaces
    def scene_no_driver_for_a_gpu(self):
        self.gpu("0000:65:00.0", "0x10de", "0x2330", "0x030200")
        return self.doctor(before=f"mount --bind {self.home}/bus /sys/bus/pci/devices")

    @namespaces
    def scene_no_node_in_a_container(self):
        self.gpu("0000:03:00.0", "0x1002", "0x7448", "0x030000", driver="amdgpu")
        return self.doctor(before=f"mount --bind {self.home}/bus /sys/bus/pci/devices\n" + NODES + "rmdir /dev/dri")

    @no_gpu
    def scene_empty_environment(self):
        return self.doctor(env={})

    @no_gpu
    @unprivileged
    def scene_unprivileged(self):
        return self.doctor(wrap=[*NOBODY, "env", "-u", "HOME"])

    def scene_crash_and_hang(self):
        crash = self.manifest(self.fake("VULKAN", "libvulkan_crash.so", "-DAT_INSTANCE=crash()"), "crash_icd.json")
        hang = self.manifest(self.fake("VULKAN", "libvulkan_hang.so", "-DAT_INSTANCE=hang()"), "hang_icd.json")
        return self.doctor("--driver-timeout", "2", env=self.environment(VK_DRIVER_FILES=f"{crash}:{hang}"))

    def scene_missing_dependency(self):
        other = self.home / "lib/libcompiler.so.7"
        self.fake("OTHER", other.name, "-Wl,-soname,libcompiler.so.7")
        library = self.fake("VULKAN", "libvulkan_fake.so", "-Wl,--no-as-needed", str(other))
        other.unlink()
        return self.doctor(env=self.environment(VK_DRIVER_FILES=self.manifest(library)))

    @no_gpu
    def scene_required(self):
        return self.doctor("--require", "cuda", code=3)

    def gpu(self, address, vendor, device, kind, driver=None):
        at = self.home / "bus" / address
        at.mkdir(parents=True)
        for name, value in (("vendor", vendor), ("device", device), ("class", kind)):
            (at / name).write_text(value + "\n")
        if driver:
            (at / "driver").symlink_to("../../../drivers/" + driver)


class Says(Scenarios):
    def test_pocl_and_lavapipe_are_there_and_run_on_the_processor(self):
        self.scene("pocl_and_lavapipe")
        for check in ("opencl pocl", "vulkan lvp"):
            row = self.row(check)
            self.assertEqual(row["state"], "ok")
            self.assertIn("runs on the processor", row["value"])
            (device,) = row["detail"]["devices"]
            self.assertTrue(device["software"])
            self.assertEqual(device["type"], "cpu")
            self.assertGreater(device["memory_bytes"], 1 << 28)
            self.assertRegex(device["version"], r"^\d+\.\d+$")

    @real_drivers
    def test_memory_is_what_the_driver_says_and_no_more_than_the_machine_has(self):  # D01: ggml-org/llama.cpp#17536
        self.scene("pocl_and_lavapipe")
        machine = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
        for check in ("opencl pocl", "vulkan lvp"):
            self.assertLessEqual(self.row(check)["detail"]["devices"][0]["memory_bytes"], machine)

    def test_neither_names_loader_places_and_packages(self):
        self.scene("neither")
        for check, library, package in (("opencl", "libOpenCL.so.1", "pocl-opencl-icd"), ("vulkan", "libvulkan.so.1", "mesa-vulkan-drivers")):
            row = self.row(check)
            self.assertEqual(row["reason"], "library_missing")
            self.assertEqual(row["detail"]["library"], library)
            self.assertIn(f"{library} is not installed", row["why"])
            self.assertIn(package, row["try"])
        self.assertEqual(self.row("device cpu:0")["state"], "ok")

    def test_a_library_without_device_is_told_from_no_library(self):
        self.scene("library_without_device")
        row = self.row("cuda")
        self.assertEqual(row["reason"], "no_device")
        self.assertIn("CUDA_ERROR_NO_DEVICE", row["why"])
        self.assertIn("library is there", row["value"])

    def test_pocl_without_devices(self):
        self.scene("pocl_and_lavapipe")  # skips where it is absent
        self.doctor(env=self.environment(POCL_DEVICES="none"))
        row = self.row("opencl")
        self.assertEqual((row["reason"], row["try"]), ("no_device", "unset POCL_DEVICES"))

    def test_an_empty_folder_of_drivers_is_the_variables_doing(self):
        (self.home / "none").mkdir()
        self.doctor(env=self.environment(OCL_ICD_VENDORS=self.home / "none", VK_DRIVER_FILES=self.home / "none"))
        for check, name in (("opencl", "OCL_ICD_VENDORS"), ("vulkan", "VK_DRIVER_FILES")):
            self.assertEqual(self.row(check)["try"], "unset " + name)

    def test_rocminfo_34_permission_is_the_nodes_own_group_and_mode(self):  # D04: ROCm/rocminfo#34
        self.scene("no_permission")
        row = self.row("device node")
        self.assertEqual(row["reason"], "no_permission")
        self.assertEqual({k: row["detail"][k] for k in ("path", "owner", "group", "mode", "code")},
                         {"path": "/dev/dri/renderD128", "owner": "root", "group": "video", "mode": "0660", "code": "EACCES"})
        self.assertEqual(row["try"], "sudo usermod -aG video nobody")

    @nodes
    @unprivileged
    def test_rocminfo_34_a_group_without_a_name_is_its_number(self):
        self.doctor(before=NODES + "mknod -m 660 /dev/kfd c 240 0; chgrp 4242 /dev/kfd\n", wrap=NOBODY)
        row = self.row("device node")
        self.assertEqual(row["detail"]["group"], "4242")
        self.assertEqual(row["try"], "sudo groupadd -g 4242 gpu && sudo usermod -aG gpu nobody")

    def test_rocminfo_34_a_node_without_device_is_no_matter_of_permission(self):
        self.scene("node_without_device")
        found = {row["detail"]["path"]: row for row in self.rows if row["check"] == "device node"}
        self.assertEqual({p: (r["reason"], r["detail"]["code"]) for p, r in found.items()},
                         {"/dev/dri/renderD128": ("no_device", "ENODEV"), "/dev/nvidiactl": ("no_device", "ENXIO")})
        self.assertIn("ENODEV: No such device", found["/dev/dri/renderD128"]["why"])

    @nodes
    def test_nodes_that_open_are_good(self):
        self.doctor(before=NODES + "mknod -m 666 /dev/dri/renderD128 c 1 3\n")
        row = self.row("device nodes")
        self.assertEqual((row["state"], row["value"]), ("ok", "/dev/dri/renderD128 opens"))

    def test_a_gpu_without_any_driver_is_found_on_the_bus(self):
        self.scene("no_driver_for_a_gpu")
        row = self.row("hardware")
        self.assertEqual(row["value"], "an NVIDIA GPU (10de:2330) at 0000:65:00.0 has no driver")
        self.assertEqual((row["state"], row["reason"]), ("warning", "library_missing"))

    def test_absent_nodes_of_a_driver_at_work_are_said(self):
        self.scene("no_node_in_a_container")
        self.assertEqual(self.row("device nodes")["reason"], "no_device")

    def test_an_empty_environment_changes_nothing_of_the_drivers(self):
        self.scene("empty_environment")
        empty = [r for r in self.rows if r["check"].split()[0] in ("opencl", "cuda", "rocm")]
        self.doctor()
        self.assertEqual(empty, [r for r in self.rows if r["check"].split()[0] in ("opencl", "cuda", "rocm")])

    def test_a_user_without_home_gets_the_same_answers(self):
        self.scene("unprivileged")
        self.assertEqual(self.row("device cpu:0")["state"], "ok")
        self.assertIn(self.row("cuda")["reason"], ("no_device", "not_built"))

    def test_a_crash_and_a_hang_of_drivers_are_said_and_harm_nothing(self):
        self.scene("crash_and_hang")
        crash, hang = self.row("vulkan crash"), self.row("vulkan hang")
        self.assertEqual((crash["reason"], crash["detail"]["signal"], crash["detail"]["stage"]), ("driver_crashed", "SIGSEGV", "start"))
        self.assertEqual((hang["reason"], hang["detail"]["limit"], hang["detail"]["stage"]), ("driver_timeout", "2 s", "start"))
        self.assertIn("tenon doctor --again", crash["why"], "the second run did not start it")
        self.assertEqual(self.row("device cpu:0")["state"], "ok")

    def test_a_library_that_a_driver_needs_is_named_with_the_driver(self):  # L09: the first cause is kept
        self.scene("missing_dependency")
        row = self.row("vulkan fake")
        self.assertEqual(row["reason"], "library_missing")
        self.assertEqual(row["detail"]["library"], "libcompiler.so.7")
        self.assertTrue(row["detail"]["needed_by"].endswith("libvulkan_fake.so"))

    def test_each_bad_driver_has_its_reason(self):
        text, wrong = self.home / "text.so", self.home / "wrong.so"
        text.write_text("no library\n" * 100)
        elf = bytearray(self.fake("VULKAN", "whole.so").read_bytes())
        elf[4] = 1  # ELFCLASS32
        wrong.write_bytes(elf)
        cases = {"text": (text, "abi_mismatch"), "wrong": (wrong, "abi_mismatch"), "gone": (self.home / "gone.so", "library_missing"),
                 "symbol": (self.fake("OTHER", "symbol.so"), "abi_mismatch"), "old": (self.fake("VULKAN", "old.so", "-DVERSION=(1u<<22)"), "driver_too_old"),
                 "code": (self.fake("VULKAN", "code.so", "-DINIT=-3"), "init_failed"), "none": (self.fake("VULKAN", "none.so", "-DCOUNT=0"), "no_device"),
                 "load": (self.fake("VULKAN", "load.so", "-DAT_LOAD=crash()"), "driver_crashed"), "leave": (self.fake("VULKAN", "leave.so", "-DAT_LOAD=leave()"), "driver_crashed"),
                 "good": (self.fake("VULKAN", "good.so", "-DVERSION=(1u<<22|3u<<12)"), "not_built")}
        files = ":".join(str(self.manifest(library, f"{name}_icd.json")) for name, (library, _) in cases.items())
        self.doctor(env=self.environment(VK_DRIVER_FILES=files))
        for name, (_, reason) in cases.items():
            self.assertEqual(self.row("vulkan" if name == "none" else f"vulkan {name}")["reason"], reason, name)
        self.assertEqual(self.row("vulkan wrong")["state"], "note", "made for other programs is no fault")
        self.assertEqual(self.row("vulkan old")["detail"]["have"], "1.0")
        self.assertEqual(self.row("vulkan code")["detail"]["code"], "VK_ERROR_INITIALIZATION_FAILED")

    @no_gpu
    def test_cuda_libraries_of_every_kind(self):
        for flags, reason, word in ((["-DINIT=34"], "library_missing", "stub"), (["-DVERSION=9020"], "driver_too_old", "9.2"), (["-DINIT=803"], "abi_mismatch", "803"),
                                    (["-DINIT=999"], "init_failed", "999"), (["-DAT_LOAD=crash()"], "driver_crashed", "SIGSEGV in stage load"), ([], "not_built", "CUDA")):
            self.fake("CUDA", "libcuda.so.1", *flags)
            self.doctor(env=self.environment(LD_LIBRARY_PATH=self.home / "lib"))
            self.assertEqual(self.row("cuda")["reason"], reason, flags)
            self.assertIn(word, self.row("cuda")["why"])
        self.assertEqual(self.row("cuda")["detail"]["devices"][0]["memory_bytes"], 192 << 30)
        self.assertEqual(self.row("cuda")["detail"]["devices"][0]["pci"], "0000:65:00.0")

    def test_a_file_that_cannot_be_read_is_named_with_its_code(self):
        (self.home / "v").mkdir()
        (self.home / "v/odd.icd").mkdir()
        self.doctor(env=self.environment(OCL_ICD_VENDORS=self.home / "v"))
        row = next(r for r in self.rows if r["check"] == "opencl")
        self.assertEqual((row["reason"], row["detail"]["code"]), ("init_failed", "EISDIR"))

    @unprivileged
    def test_files_of_drivers_that_may_not_be_read_are_a_permission(self):
        (self.home / "v").mkdir()
        (self.home / "v/closed.icd").write_text("libclosed.so\n")
        (self.home / "v/closed.icd").chmod(0o640)
        library = self.fake("VULKAN", "libclosed.so")
        library.chmod(0o600)
        self.doctor(wrap=[*NOBODY, "env", "-u", "HOME"], env=self.environment(OCL_ICD_VENDORS=self.home / "v", VK_DRIVER_FILES=self.manifest(library)))
        for check, path, mode in (("opencl", self.home / "v/closed.icd", "0640"), ("vulkan fake", library, "0600")):
            row = next(r for r in self.rows if r["check"] == check)
            self.assertEqual(row["reason"], "no_permission", row)
            self.assertEqual({k: row["detail"][k] for k in ("path", "owner", "group", "mode", "code")},
                             {"path": str(path), "owner": "root", "group": "root", "mode": mode, "code": "EACCES"})
            self.assertRegex(row["try"], f"^sudo chmod a.rx? {path}$")

    def test_exit_status_tells_no_backend_from_a_broken_driver_that_is_required(self):  # D03: pytorch/pytorch#30528
        self.fake("CUDA", "libcuda.so.1")
        env = self.environment(LD_LIBRARY_PATH=self.home / "lib")
        self.doctor("--require", "cuda", env=env)  # works, though Tenon has no backend
        self.fake("CUDA", "libcuda.so.1", "-DINIT=999")
        self.doctor(env=env)                       # broken, and nobody asked for it
        self.doctor("--require", "cuda", code=3, env=env)
        self.assertTrue(self.row("cuda")["required"])
        self.assertEqual(self.row("cuda")["state"], "missing")

    def test_a_time_that_is_none_is_a_usage_error(self):
        for time_limit in ("0", "-1", "nan", "1e9"):
            self.assertEqual(self.run_doctor("--driver-timeout", time_limit).returncode, 2, time_limit)

    def test_a_misspelt_requirement_is_a_usage_error(self):
        done = self.run_doctor("--require", "cuba")
        self.assertEqual(done.returncode, 2)
        self.assertIn("TN-CLI-002", done.stderr)


    def test_the_page_shows_every_scene_and_no_other(self):
        self.assertEqual(sorted(BLOCKS), sorted(n[len("scene_"):] for n in dir(self) if n.startswith("scene_")))

    def test_the_page_lists_every_reason(self):
        source = (ROOT / "tools/tenon/look/reasons.cpp").read_text()
        reasons = re.findall(r'"(\w+)"', re.search(r"kReasons\[\] = \{(.*?)\}", source).group(1))
        self.assertEqual(len(reasons), 9)
        self.assertEqual(reasons, re.findall(r"^\| `(\w+)` \|", PAGE, re.M))

    def test_a_required_driver_that_is_absent_ends_with_3(self):
        self.scene("required")
        self.assertTrue(self.row("cuda")["required"])


class Starts(Doctor):
    def test_no_driver_is_opened_in_the_doctors_own_process_nor_twice(self):
        library = self.fake("VULKAN", "libvulkan_fake.so", "-DVERSION=(1u<<22|3u<<12)")
        log = self.home / "log"
        env = self.environment(VK_DRIVER_FILES=self.manifest(library), FAKE_DRIVER_LOG=log)
        started = []
        for _ in range(2):
            log.write_bytes(b"----")
            self.run_doctor(env=env)
            started.append(log.stat().st_size == 1)
        self.assertEqual(started, [True, False])
        log.write_bytes(b"----")
        self.run_doctor("--again", env=env)
        self.assertEqual(log.stat().st_size, 1)

    def test_the_helper_is_not_for_people(self):
        self.assertEqual(subprocess.run([str(HELPER), "cuda", "libcuda.so.1"], capture_output=True, close_fds=True).returncode, 1)

    def test_an_installation_without_the_helper_says_that_nobody_was_asked(self):
        alone = self.home / "bin/tenon"
        alone.parent.mkdir()
        shutil.copy(TENON, alone)
        for arguments, code, state in ((["--json"], 0, "warning"), (["--json", "--require", "vulkan"], 3, "missing")):
            done = subprocess.run([str(alone), "doctor", *arguments], env=self.environment(LD_LIBRARY_PATH=TENON.parent.parent / "lib"), capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            rows = {r["check"]: r for r in map(json.loads, done.stdout.splitlines())}
            self.assertEqual((rows["drivers"]["state"], rows["drivers"]["value"]), (state, "not asked"))
            self.assertNotIn("vulkan", rows)

    def test_nothing_of_tenon_links_a_driver(self):
        for file in (TENON, HELPER):
            needed = subprocess.run(["readelf", "-d", str(file)], capture_output=True, text=True, check=True).stdout
            for word in ("OpenCL", "vulkan", "cuda", "amdhip"):
                self.assertNotIn(f"[lib{word}", needed, file)

    def test_a_second_look_is_quick(self):
        self.run_doctor()
        times = []
        for _ in range(9):
            begin = time.monotonic()
            self.run_doctor()
            times.append(time.monotonic() - begin)
        self.assertLess(sorted(times)[1], 2, times)  # bench and docs have the figure; a loaded machine must not fail here


class Report(Doctor):
    def test_holds_reasons_and_names_nobody(self):
        hang = self.manifest(self.fake("VULKAN", "libvulkan_bad.so", "-DAT_LOAD=crash()"), "bad_icd.json")
        done = self.run_doctor("--report", str(self.home / "report"), env=self.environment(VK_DRIVER_FILES=hang, USER="somebody"))
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.home / "report").read_text()
        rows = {r["check"]: r for r in map(json.loads, text.splitlines()) if r["kind"] == "finding"}
        self.assertEqual(rows["vulkan bad"]["reason"], "driver_crashed")
        self.assertTrue(rows["vulkan bad"]["detail"]["library"].startswith("~/lib/"), rows["vulkan bad"])
        self.assertNotIn(str(self.home), text)

    @nodes
    @unprivileged
    def test_leaves_out_who_may_not_open_a_node(self):
        self.home.chmod(0o777)
        make = NODES + "mknod -m 660 /dev/dri/renderD128 c 226 128; chgrp video /dev/dri/renderD128\n"
        done = self.run_doctor("--report", str(self.home / "report"), before=make, wrap=[*NOBODY, "env", "-u", "HOME"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("usermod -aG video nobody", done.stdout)
        text = (self.home / "report").read_text()
        self.assertIn("usermod -aG video (user)", text)
        self.assertNotRegex(text, r"\bnobody\b")


if __name__ == "__main__":
    unittest.main()

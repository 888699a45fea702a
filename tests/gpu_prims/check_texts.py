#!/usr/bin/env python3
"""Compiles every kernel text that the tests of this folder make, in the languages whose compilers are here.

  check_texts.py TEST_PROGRAM          runs it with TENON_DUMP_TEXTS, then glslangValidator + spirv-val and NVRTC
  check_texts.py --races TEST_PROGRAM  runs its small cases under oclgrind --data-races instead

Ends with 0 when all is well, 77 when no compiler (or no oclgrind) is installed."""
import ctypes, glob, os, shutil, subprocess, sys, tempfile

ARCHITECTURES = ["sm_80", "sm_90", "sm_90a", "sm_100"]


def glsl(folder):
    if not (shutil.which("glslangValidator") and shutil.which("spirv-val")):
        return None
    bad = 0
    for source in sorted(glob.glob(folder + "/*.comp")):
        spirv = folder + "/k.spv"
        for command in (["glslangValidator", "-V", "--target-env", "vulkan1.2", "-o", spirv, source], ["spirv-val", "--target-env", "vulkan1.2", spirv]):
            r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if r.returncode != 0:
                bad += 1
                print(source, r.stdout[:1500])
                break
    return bad


def nvrtc(folder):
    lib = None
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"):
        try:
            lib = ctypes.CDLL(name)
            break
        except OSError:
            pass
    if lib is None:
        return None
    bad = 0
    for k, source in enumerate(sorted(glob.glob(folder + "/*.cu"))):
        program = ctypes.c_void_p()
        lib.nvrtcCreateProgram(ctypes.byref(program), open(source, "rb").read(), b"k.cu", 0, None, None)
        options = (ctypes.c_char_p * 2)(("-arch=" + ARCHITECTURES[k % 4]).encode(), b"--fmad=false")
        if lib.nvrtcCompileProgram(program, 2, options) != 0:
            bad += 1
            size = ctypes.c_size_t()
            lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            lib.nvrtcGetProgramLog(program, log)
            print(source, log.value.decode()[:1500])
        lib.nvrtcDestroyProgram(ctypes.byref(program))
    return bad


def races(test):
    if not shutil.which("oclgrind"):
        return 77
    r = subprocess.run(["oclgrind", "--data-races", test, "--gtest_filter=Races.*"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(r.stdout[-4000:])
    said = [w for w in ("data race", "Invalid") if w in r.stdout]
    return 1 if r.returncode != 0 or said else 0


def main():
    if sys.argv[1] == "--races":
        return races(sys.argv[2])
    folder = os.environ.get("TENON_TEXTS") or tempfile.mkdtemp(prefix="tenon_texts_")
    if "TENON_TEXTS" not in os.environ:
        subprocess.run([sys.argv[1], "--gtest_filter=Texts.*"], env={**os.environ, "TENON_DUMP_TEXTS": folder}, check=True)
    results = {"glsl": glsl(folder), "nvrtc": nvrtc(folder)}
    print(results, len(glob.glob(folder + "/*.comp")), "texts")
    if "TENON_TEXTS" not in os.environ:
        shutil.rmtree(folder)
    if all(r is None for r in results.values()):
        return 77
    return 1 if any(r for r in results.values()) else 0


sys.exit(main())

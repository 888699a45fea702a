# Debian's cross compiler for aarch64, with Debian's own arm64 libraries, and qemu-user to run what was built:
#
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install g++-aarch64-linux-gnu qemu-user zlib1g-dev:arm64 libssl-dev:arm64 libgtest-dev:arm64
#   cmake -S . -B build/aarch64 -G Ninja --toolchain tools/cmake/aarch64-linux-gnu.cmake
#
# Headers that are the same on every machine (Boost, Highway, nlohmann-json, toml++, CLI11) come from the packages that the
# native build uses. Libraries are looked for in arm64's folders only, so a plugin whose library is absent there is left out.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_IGNORE_PATH /usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu/cmake)
# The loader and the C++ library come from the cross compiler's packages; what they lack is found in arm64's own folders.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

# Every third-party library, in one place, with the reason it is there. Debian 12 has all of them;
# installers/debian-packages.txt names the packages.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

find_package(fmt REQUIRED)            # text formatting; std::format is not in GCC 12
find_package(spdlog REQUIRED)         # rotating log files; hidden behind core/base/log.h
find_package(nlohmann_json REQUIRED)  # JSON: manifests, tokenizer, safetensors header, --json
find_package(CLI11 REQUIRED)          # command line of neuroshardd
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)  # settings.toml
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)           # Ed25519, Argon2id, XChaCha20-Poly1305
pkg_check_modules(libcrypto REQUIRED IMPORTED_TARGET libcrypto)         # SHA-256 with the processor's instructions
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)            # state.db
pkg_check_modules(libcurl REQUIRED IMPORTED_TARGET libcurl)            # downloads with ranges and proxies
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)              # the container of .pt shards
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)       # Unicode categories for the GPT-2 split
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)        # genesis serve
find_package(Boost 1.74 REQUIRED)     # Asio and Beast, headers only: a node's local HTTP server
pkg_check_modules(protobuf REQUIRED IMPORTED_TARGET protobuf)          # messages between programs and nodes
pkg_check_modules(grpcpp REQUIRED IMPORTED_TARGET grpc++)              # the control service: calls and streams over TLS
pkg_check_modules(libsecret IMPORTED_TARGET libsecret-1)               # desktop keychain (optional)
pkg_check_modules(libsystemd IMPORTED_TARGET libsystemd)              # notice of suspend and shutdown (optional)

pkg_check_modules(qrencode REQUIRED IMPORTED_TARGET libqrencode)      # QR codes of invitations
pkg_check_modules(libtorrent REQUIRED IMPORTED_TARGET libtorrent-rasterbar)  # the BitTorrent DHT as a rendezvous
pkg_check_modules(miniupnpc REQUIRED IMPORTED_TARGET miniupnpc)       # port mappings by UPnP

find_program(NS_PROTOC protoc REQUIRED)                  # generates the code of proto/*.proto
find_program(NS_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)    # and of their services

if(NS_COMPUTE_MODULE)
  find_package(Torch REQUIRED)        # tensors and autograd: only core/model
  find_package(dnnl REQUIRED)         # matrix products at the machine's speed, whatever BLAS is installed
  find_package(OpenMP REQUIRED)       # one thread pool with LibTorch and oneDNN
endif()
if(NS_BUILD_TESTS)
  find_package(Qt6 6.2 REQUIRED COMPONENTS Core Network Test)  # the test framework
endif()
if(NS_BUILD_APP AND NOT NS_FUZZ)
  # Widgets: the window. Charts: bars, donuts, histograms (GPL-3, and so is the app's binary). Svg: icons. Network: one
  # instance at a time. DBus: the desktop's colour scheme. LinguistTools: translations.
  find_package(Qt6 6.2 QUIET COMPONENTS Widgets Charts Svg Network DBus LinguistTools)
  if(NOT Qt6Widgets_FOUND OR NOT Qt6Charts_FOUND OR NOT Qt6Svg_FOUND OR NOT Qt6Network_FOUND OR NOT Qt6DBus_FOUND
     OR NOT Qt6LinguistTools_FOUND)
    message(STATUS "The desktop app is not built: Qt 6 is not complete (installers/debian-packages.txt)")
    set(NS_BUILD_APP OFF)
  endif()
else()
  set(NS_BUILD_APP OFF)
endif()

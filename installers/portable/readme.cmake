# README.txt of the portable archive. It names the packages of this distribution whose libraries the programs open. Run by cpack
# with NS_SOURCE (the source tree), NS_BIN (the built programs) and NS_TARGET (the folder for README.txt).
set(work "${NS_TARGET}.packages")
file(WRITE "${work}/debian/control" "Source: neuroshard\n\nPackage: neuroshard\nArchitecture: any\n")
file(GLOB programs "${NS_BIN}/neuroshardd" "${NS_BIN}/neuroshard" "${NS_BIN}/../lib/neuroshard/*.so")
execute_process(COMMAND dpkg-shlibdeps -O --warnings=0 ${programs} WORKING_DIRECTORY "${work}" OUTPUT_VARIABLE found
  RESULT_VARIABLE status)
file(REMOVE_RECURSE "${work}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "dpkg-shlibdeps ended with ${status}; it says which package has each library")
endif()
# "shlibs:Depends=libc6 (>= 2.34), libfmt9 (>= 9.1.0+ds1), …"
string(FIND "${found}" "=" before)
math(EXPR after "${before} + 1")
string(SUBSTRING "${found}" ${after} -1 found)
string(REGEX REPLACE " \\([^)]*\\)|[,\n]" "" NS_PACKAGES "${found}")
set(NS_VERSION "$ENV{NS_PACKAGE_VERSION}")
set(NS_PROCESSOR "${CMAKE_HOST_SYSTEM_PROCESSOR}")
if(NOT NS_PROCESSOR)
  cmake_host_system_information(RESULT NS_PROCESSOR QUERY OS_PLATFORM)
endif()
configure_file("${NS_SOURCE}/installers/portable/README.txt.in" "${NS_TARGET}/README.txt" @ONLY NO_SOURCE_PERMISSIONS)

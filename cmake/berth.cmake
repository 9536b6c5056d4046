# How every target of the project is compiled, and the two kinds of target there are: a room (one
# static library per folder of src/) and a test program.

add_library(berth_options INTERFACE)
target_include_directories(berth_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(berth_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual
  -ffp-contract=off)   # same bytes on every machine: no fused multiply-add behind our back
if(BERTH_STRICT)
  target_compile_options(berth_options INTERFACE -Werror)
endif()
if(BERTH_SANITIZE)
  target_compile_options(berth_options INTERFACE -fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(berth_options INTERFACE -fsanitize=${BERTH_SANITIZE})
endif()
target_compile_definitions(berth_options INTERFACE BERTH_VERSION="${PROJECT_VERSION}")

# berth_units(result target sources…): what to compile of these sources. With BERTH_TOGETHER up to eight of a folder are one
# unit, which halves the time of a build from nothing; sources listed as ALONE are not, because they have helpers of the same
# names as their neighbours. (CMake's own unity builds name files by their absolute path, so that no two checkouts could
# share a compiler cache.)
function(berth_units result target)
  if(NOT BERTH_TOGETHER)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(units)
  set(names)
  foreach(source ${ARGN})
    if(IS_ABSOLUTE "${source}")
      list(APPEND units ${source})
      continue()
    endif()
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "part_${folder}" group)
    if(NOT DEFINED count_${group})
      set(count_${group} 0)
    endif()
    math(EXPR part "${count_${group}} / 8")
    math(EXPR count_${group} "${count_${group}} + 1")
    file(RELATIVE_PATH from_root ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    string(APPEND text_${group}${part} "#include \"${from_root}\"\n")
    list(APPEND names ${group}${part})
  endforeach()
  list(REMOVE_DUPLICATES names)
  foreach(name ${names})
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/together/${target}/${name}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text_${name}}" @ONLY)
    list(APPEND units ${unit})
  endforeach()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

# berth_room(name SOURCES … ALONE … DEPENDS rooms… LIBRARIES …): the library berth_<name>
function(berth_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;ALONE;DEPENDS;LIBRARIES" ${ARGN})
  berth_units(units ${name} ${ROOM_SOURCES})
  add_library(berth_${name} STATIC ${units} ${ROOM_ALONE})
  target_include_directories(berth_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(berth_${name} PUBLIC berth_options fmt::fmt ${ROOM_LIBRARIES})
  foreach(room ${ROOM_DEPENDS})
    target_link_libraries(berth_${name} PUBLIC berth_${room})
  endforeach()
endfunction()

# Where tests find the project's own files and, where it is there, ../shared. In a header of the few that ask, not on every
# command line: otherwise no two checkouts could share a compiler cache.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/project_paths.h CONTENT
  "#pragma once\n\n#define BERTH_SOURCE_DIR \"@PROJECT_SOURCE_DIR@\"\n#define BERTH_SHARED_DIR \"@PROJECT_SOURCE_DIR@/../shared\"\n" @ONLY)

# berth_test(name [SERIAL] [LIVE] SOURCES … ALONE … DEPENDS rooms…): one GoogleTest program, found by ctest test by test;
# nothing runs beside the tests of a SERIAL one, because they measure. LIVE: a test of daemon, api, exec, store or training,
# which `./test --asan` and `--tsan` build (target live_tests) and run (label live)
function(berth_test name)
  cmake_parse_arguments(TEST "SERIAL;LIVE" "" "SOURCES;ALONE;DEPENDS" ${ARGN})
  berth_units(units ${name} ${TEST_SOURCES})
  add_executable(${name} ${units} ${TEST_ALONE})
  target_link_libraries(${name} PRIVATE berth_options GTest::gtest GTest::gmock GTest::gtest_main fmt::fmt)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  foreach(room ${TEST_DEPENDS})
    target_link_libraries(${name} PRIVATE berth_${room})
  endforeach()
  set(label)
  if(TEST_LIVE)
    set(label LABELS live)
    if(NOT TARGET live_tests)
      add_custom_target(live_tests)
    endif()
    add_dependencies(live_tests ${name})
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 RUN_SERIAL ${TEST_SERIAL} ${label})
endfunction()

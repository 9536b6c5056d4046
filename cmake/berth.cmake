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

# berth_together(target SOURCES … ALONE …): with BERTH_TOGETHER up to eight sources of a folder are compiled as one, which
# halves the time of a build from nothing. Those named ALONE have helpers of the same names as their neighbours. CMake's own
# unity builds name files by their absolute path, so that no two checkouts could share a compiler cache.
function(berth_together target)
  if(NOT BERTH_TOGETHER)
    return()
  endif()
  cmake_parse_arguments(UNIT "" "" "SOURCES" ${ARGN})
  set(units)
  foreach(source ${UNIT_SOURCES})
    if(IS_ABSOLUTE "${source}")
      continue()
    endif()
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    if(NOT DEFINED count_${group})
      set(count_${group} 0)
    endif()
    math(EXPR part "${count_${group}} / 8")
    math(EXPR count_${group} "${count_${group}} + 1")
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/together/${target}/${group}${part}.cpp)
    file(RELATIVE_PATH from_root ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    string(APPEND text_${group}${part} "#include \"${from_root}\"\n")
    list(APPEND units ${unit})
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(unit ${units})
    get_filename_component(name ${unit} NAME_WE)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text_${name}}" @ONLY)
  endforeach()
  target_sources(${target} PRIVATE ${units})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# berth_room(name SOURCES … ALONE … DEPENDS rooms… LIBRARIES …): the library berth_<name>
function(berth_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;ALONE;DEPENDS;LIBRARIES" ${ARGN})
  add_library(berth_${name} STATIC ${ROOM_SOURCES} ${ROOM_ALONE})
  berth_together(berth_${name} SOURCES ${ROOM_SOURCES})
  target_link_libraries(berth_${name} PUBLIC berth_options fmt::fmt ${ROOM_LIBRARIES})
  foreach(room ${ROOM_DEPENDS})
    target_link_libraries(berth_${name} PUBLIC berth_${room})
  endforeach()
endfunction()

# berth_test(name [SERIAL] SOURCES … ALONE … DEPENDS rooms…): one GoogleTest program, found by ctest test by test; nothing
# runs beside the tests of a SERIAL one, because they measure
function(berth_test name)
  cmake_parse_arguments(TEST "SERIAL" "" "SOURCES;ALONE;DEPENDS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES} ${TEST_ALONE})
  berth_together(${name} SOURCES ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE berth_options GTest::gtest GTest::gmock GTest::gtest_main fmt::fmt)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE
    BERTH_SOURCE_DIR="${PROJECT_SOURCE_DIR}" BERTH_SHARED_DIR="${PROJECT_SOURCE_DIR}/../shared")
  foreach(room ${TEST_DEPENDS})
    target_link_libraries(${name} PRIVATE berth_${room})
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 RUN_SERIAL ${TEST_SERIAL})
endfunction()

# cmake -DINPUT=report.html -DOUTPUT=page.cpp -P embed.cmake: the page as a byte array in a C++ source.
file(READ "${INPUT}" hex HEX)
file(READ "${INPUT}" text)
string(REGEX MATCHALL "__BERTH_DATA__" tokens "${text}")
list(LENGTH tokens count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${INPUT}: the token __BERTH_DATA__ must stand there exactly once, found ${count} "
                      "(rebuild the page: npm run build in web/report)")
endif()
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE "${OUTPUT}" "// Made from ${INPUT} by embed.cmake.
#include \"report/html.h\"
namespace berth {
namespace {
constexpr unsigned char kPage[] = {
${bytes}};
}
std::string_view report_page() noexcept { return {reinterpret_cast<const char*>(kPage), sizeof(kPage)}; }
}  // namespace berth
")

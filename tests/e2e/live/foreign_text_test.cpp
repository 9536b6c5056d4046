// Names, comments and reasons that try to command the terminal of whoever looks: every character
// that could, through every command that prints what users wrote, byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "e2e/live/served.h"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string utf8(char32_t code) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0U | (code >> 6U)), byte(0x80U | (code & 0x3FU))};
  if (code < 0x10000)
    return {byte(0xE0U | (code >> 12U)), byte(0x80U | ((code >> 6U) & 0x3FU)),
            byte(0x80U | (code & 0x3FU))};
  return {byte(0xF0U | (code >> 18U)), byte(0x80U | ((code >> 12U) & 0x3FU)),
          byte(0x80U | ((code >> 6U) & 0x3FU)), byte(0x80U | (code & 0x3FU))};
}

/// All that is unsafe from `first` on, as texts of at most 200 bytes; tags only by example.
std::vector<std::string> unsafe_texts(char32_t first) {
  std::vector<std::string> texts{"A"};
  for (char32_t code = first; code < 0xE0042; ++code) {
    if (!is_unsafe(code)) continue;
    if (texts.back().size() > 200) texts.emplace_back("A");
    texts.back() += utf8(code) + "z";
  }
  return texts;
}

/// In single quotes for the shell.
std::string quoted(const std::string& text) { return "'" + text + "'"; }

void expect_safe(const std::string& text, const std::string& where) {
  for (std::size_t i = 0; i < text.size();) {
    const Character character = first_character(std::string_view(text).substr(i));
    if (text[i] != '\n') {
      ASSERT_TRUE(character.is_valid) << where << " at byte " << i;
      ASSERT_FALSE(is_unsafe(character.code))
          << where << fmt::format(": U+{:04X}", static_cast<std::uint32_t>(character.code));
    }
    i += character.bytes;
  }
}

class ForeignText : public ::testing::Test {
 protected:
  Ran safely(const std::string& arguments) const {
    return looked_at(served.run(arguments), arguments);
  }
  /// The program under another name.
  Ran safely_as(const std::string& name, const std::string& arguments) const {
    return looked_at(
        shell(served.folder(), fmt::format("ln -sf $BERTH {0}; BERTH_SOCKET='{1}' ./{0} {2}", name,
                                           served.folder() / "s", arguments)),
        name + " " + arguments);
  }
  static Ran looked_at(Ran ran, const std::string& what) {
    expect_safe(ran.out, what + " (standard output)");
    expect_safe(ran.err, what + " (standard error)");
    return ran;
  }
  Served served;
};

TEST_F(ForeignText, ReachesNoTerminal) {
  ASSERT_NE(served.port(), 0);
  const auto names =
      unsafe_texts(0x80);  // what a name may hold; controls of the first set it may not
  const auto reasons = unsafe_texts(0x01);
  std::vector<std::string> made;
  for (std::size_t i = 0; i < std::max(names.size(), reasons.size()); ++i) {
    const std::string& name = names[i % names.size()];
    const std::string& reason = reasons[i % reasons.size()];
    const Ran ran = safely("submit --hold --name " + quoted(name) + " --set " +
                           quoted("comment=" + reason) + " -- sleep 100");
    ASSERT_EQ(ran.exit, 0) << ran.err;
    made.push_back(name);
    const std::string job = fmt::format("{}", made.size());
    EXPECT_EQ(safely("hold --why " + quoted(reason) + " " + job).exit, 0);
    EXPECT_EQ(json::parse(safely("show --json " + job).out)["spec"]["name"], name)
        << "JSON is exact";
    EXPECT_EQ(json::parse(safely("show --json " + job).out)["spec"]["comment"], reason);
    EXPECT_THAT(safely("show " + job).out, HasSubstr("A?z?z"));
    EXPECT_THAT(safely("why " + job).out, HasSubstr("?z"));
    static_cast<void>(safely("why --json " + job));
  }
  EXPECT_THAT(safely("queue").out, HasSubstr("A?z?z"));
  EXPECT_EQ(json::parse(safely("queue --json").out)["jobs"][0]["spec"]["name"], made[0]);
  EXPECT_THAT(safely("top").out, HasSubstr("A?z?z"));
  EXPECT_THAT(safely_as("squeue", "").out, HasSubstr("A?z?z"));
  EXPECT_THAT(safely_as("squeue", "-r -o '%i|%j|%k|%o|%R|%r|%Z|%u|%a'").out, HasSubstr("A?z?z"));
  EXPECT_THAT(safely_as("squeue", "-l -O name:80,comment:80,command:80,reason").out,
              HasSubstr("A?z?z"));
  EXPECT_EQ(json::parse(safely_as("squeue", "--json").out)["jobs"].size(), made.size());

  // Reasons of nodes.
  const std::string node = json::parse(served.run("nodes --json").out)["nodes"][0]["name"];
  for (const std::string& reason : reasons) {
    EXPECT_EQ(safely("node drain " + node + " --reason " + quoted(reason)).exit, 0);
    EXPECT_THAT(safely("nodes").out, HasSubstr("?z"));
    static_cast<void>(safely("nodes --json"));
    EXPECT_THAT(safely_as("sinfo", "-R").out, HasSubstr("?z"));
    static_cast<void>(safely_as("sinfo", "-o '%E|%N'"));
    static_cast<void>(safely("top"));
  }
  EXPECT_EQ(safely("node resume " + node).exit, 0);

  // What the scheduler says when it refuses, and of what has ended.
  for (const std::string& text : unsafe_texts(0x80)) {
    EXPECT_EQ(safely("submit --gpu-type " + quoted(text) + " -- true").exit, 1);
    EXPECT_NE(safely("submit --queue " + quoted(text) + " -- true").exit, 0);
    static_cast<void>(safely("queue --name " + quoted(text)));
    static_cast<void>(safely("history --user " + quoted(text)));
  }
  EXPECT_NE(safely("submit --name $'a\\x1b]0;evil\\x07' -- true").exit, 0);
  EXPECT_EQ(safely("submit --hold --name $'\\xff\\xc0\\x9b\\xe2\\x80' -- true").exit, 0);
  for (std::size_t i = 0; i < made.size(); ++i)
    EXPECT_EQ(
        safely(fmt::format("cancel --why {} {}", quoted(reasons[i % reasons.size()]), i + 1)).exit,
        0);
  EXPECT_NE(safely("wait 1").exit, 0);
  EXPECT_THAT(safely("history").out, HasSubstr("A?z?z"));
  EXPECT_EQ(json::parse(safely("history --json").out)["jobs"].size(), made.size());
  EXPECT_NE(safely("cancel 1").exit, 0);
  static_cast<void>(safely_as("scancel", "-v 1"));
  static_cast<void>(safely_as("squeue", "-t all"));
  expect_safe(served.folder().read("err"), "the scheduler's log");
}

}  // namespace
}  // namespace berth::test

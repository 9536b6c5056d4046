#include "model/yaml_guard.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace berth {

namespace {

// yaml-cpp recurses and expands aliases: both limits are checked on the events of its parser,
// before it builds a tree that could exhaust stack or memory.
constexpr std::size_t kMaxDepth = 12;
constexpr std::size_t kMaxAliases = 1000;

/// Looks at the events of the parser only: how deep, how many documents, which aliases.
class ShapeGuard final : public YAML::EventHandler {
 public:
  ShapeGuard(const std::string& file, std::string_view holds) : file_(file), holds_(holds) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2)
      wrong(mark, fmt::format("a second document begins (one {} per file)", holds_));
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (std::ranges::find(open_, anchor) != open_.end())
      wrong(mark, "an alias inside of what it stands for (write it out)");
    if (++aliases_ == kMaxAliases)
      wrong(mark, fmt::format("more than {} aliases (write them out)", kMaxAliases));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapEnd() override { open_.pop_back(); }

  [[nodiscard]] bool saw_document() const noexcept { return documents_ > 0; }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  void open(const YAML::Mark& mark, YAML::anchor_t anchor) {
    open_.push_back(anchor);
    if (open_.size() > kMaxDepth)
      wrong(mark, fmt::format("nested deeper than {} levels (no {} is)", kMaxDepth, holds_));
  }
  void wrong(const YAML::Mark& mark, std::string_view what) {
    if (problem_.empty()) problem_ = fmt::format("{}: {}", yaml_place(file_, mark), what);
  }

  const std::string& file_;
  std::string_view holds_;
  std::vector<YAML::anchor_t> open_;
  std::size_t documents_ = 0;
  std::size_t aliases_ = 0;
  std::string problem_;
};
}  // namespace

Result<void> check_yaml_shape(const std::string& text, const std::string& file,
                              const YamlKind& kind) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  ShapeGuard guard(file, kind.holds);
  while (parser.HandleNextDocument(guard)) {
    if (!guard.problem().empty()) return fail(guard.problem());
  }
  if (!guard.saw_document())
    return fail(fmt::format("{}:1:1: the file is empty ({})", file, kind.example));
  return {};
}

// yaml-cpp counts from 0, and from -1 where it does not know; editors count from 1.
std::string yaml_place(const std::string& file, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}", file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
}

// For messages: short, and without characters that could disturb a terminal.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '?';
  }
  return text.size() > 40 ? result + "…" : result;
}

}  // namespace berth

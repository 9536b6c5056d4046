#include "model/grid.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/split.h"

namespace berth {

namespace {

constexpr std::size_t kMaxValueBytes = 256;
constexpr std::size_t kMaxAxes = 16;

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         (std::isalpha(static_cast<unsigned char>(text.front())) != 0 || text.front() == '_') &&
         std::ranges::all_of(text, is_name_char);
}

std::optional<std::int64_t> figures(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value >= 0 ? std::optional{value} : std::nullopt;
}

struct Range {
  std::int64_t first = 0, last = 0, step = 1;
};

/// "1-5", "1-9:2"; anything else is a value as it stands.
std::optional<Range> range_of(std::string_view text) {
  Range range;
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    const auto step = figures(text.substr(colon + 1));
    if (!step || *step < 1) return std::nullopt;
    range.step = *step;
    text = text.substr(0, colon);
  }
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = figures(text.substr(0, dash)), last = figures(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  range.first = *first;
  range.last = *last;
  return range;
}

bool is_value(std::string_view text) {
  const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; };
  return !text.empty() && text.size() <= kMaxValueBytes && std::ranges::none_of(text, is_control);
}

Result<std::vector<std::string>> values_of(std::string_view text) {
  std::vector<std::string> values;
  for (const std::string_view part : split(text, ',')) {
    if (!is_value(part)) return fail(fmt::format("'{}' is no value", part));
    const auto range = range_of(part);
    if (!range) values.emplace_back(part);
    for (std::int64_t v = range ? range->first : 1; v <= (range ? range->last : 0);
         v += range->step) {
      values.push_back(fmt::format("{}", v));
      if (values.size() > kMaxArraySize || v > range->last - range->step) break;
    }
    if (values.size() > kMaxArraySize)
      return fail(fmt::format("more than {} values", kMaxArraySize));
  }
  return values;
}

/// Calls `see` with each {name} of the text; "${name}" is the shell's.
template <class See>
void for_each_name(std::string_view text, See see) {
  for (auto at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const auto end = text.find('}', at);
    if (end == std::string_view::npos) return;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    if (is_name(name) && (at == 0 || text[at - 1] != '$')) see(at, name);
  }
}

/// Where a {name} is replaced.
std::vector<std::string_view> places_of(const JobSpec& spec) {
  std::vector<std::string_view> places(spec.command.begin(), spec.command.end());
  places.insert(places.end(), {spec.output, spec.error, spec.input});
  return places;
}

bool is_used(const JobSpec& spec, const std::string& name) {
  bool found = false;
  const auto look = [&](std::string_view text) {
    for_each_name(text, [&](std::size_t, std::string_view one) { found = found || one == name; });
    found = found || text.find(grid_variable(name)) != std::string_view::npos;
  };
  for (const std::string_view text : places_of(spec)) look(text);
  for (const auto& [variable, value] : spec.env) look(value);
  return found || spec.script.find(grid_variable(name)) != std::string::npos;
}

}  // namespace

Result<Grid> Grid::parse(const std::vector<std::string>& texts, bool zip) {
  Grid grid;
  grid.zip_ = zip;
  if (texts.size() > kMaxAxes) return fail(fmt::format("more than {} parameters", kMaxAxes));
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || !is_name(name))
      return fail(
          fmt::format("'{}' is not NAME=VALUE,VALUE (as in lr=0.1,0.01 or seed=1-5)", text));
    if (grid.has(name)) return fail(fmt::format("{} is there twice", name));
    auto values = values_of(std::string_view(text).substr(equals + 1));
    if (!values) return fail(fmt::format("{}: {}", name, values.error().text()));
    grid.axes_.push_back({name, *std::move(values)});
    const std::size_t count = grid.axes_.back().values.size();
    if (zip && grid.axes_.front().values.size() != count)
      return fail(fmt::format("zipped, {} has {} values and {} has {}", grid.axes_.front().name,
                              grid.axes_.front().values.size(), name, count));
    grid.size_ = zip ? count : grid.size_ * count;
    if (grid.size_ > kMaxArraySize)
      return fail(fmt::format("more than {} combinations", kMaxArraySize));
  }
  return grid;
}

GridPoint Grid::point(std::int32_t index) const {
  GridPoint point;
  if (index < 0 || static_cast<std::size_t>(index) >= size_) return point;
  std::size_t left = static_cast<std::size_t>(index);
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    const std::size_t count = axis->values.size();
    point.emplace_back(axis->name, axis->values[zip_ ? left : left % count]);
    if (!zip_) left /= count;
  }
  std::ranges::reverse(point);
  return point;
}

bool Grid::has(std::string_view name) const noexcept {
  return std::ranges::any_of(axes_, [&](const Axis& axis) { return axis.name == name; });
}

std::vector<std::string> Grid::names() const {
  std::vector<std::string> all;
  for (const Axis& axis : axes_) all.push_back(axis.name);
  return all;
}

std::string filled_in(std::string_view text, const GridPoint& point) {
  std::string out;
  std::size_t done = 0;
  for_each_name(text, [&](std::size_t at, std::string_view name) {
    const auto found = std::ranges::find(point, name, &GridPoint::value_type::first);
    if (found == point.end()) return;
    out += text.substr(done, at - done);
    out += found->second;
    done = at + name.size() + 2;
  });
  return out.append(text.substr(done));
}

std::string grid_variable(std::string_view name) {
  std::string variable = "BERTH_GRID_";
  for (const char c : name)
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

GridPoint grid_point(const JobSpec& spec, std::int32_t index) {
  if (spec.grid.empty()) return {};
  const auto grid = Grid::parse(spec.grid, spec.grid_zip);
  return grid ? grid->point(index) : GridPoint{};
}

std::string shown_name(const JobSpec& spec, std::int32_t index) {
  std::string name = spec.name;
  for (const auto& [parameter, value] : grid_point(spec, index))
    name += fmt::format(" {}={}", parameter, value);
  return name;
}

void add_grid_array(JobSpec& spec) {
  if (spec.grid.empty() || spec.array) return;
  const auto grid = Grid::parse(spec.grid, spec.grid_zip);
  if (!grid) return;
  ArraySpec array;
  array.indices.resize(grid->size());
  std::iota(array.indices.begin(), array.indices.end(), 0);
  spec.array = std::move(array);
}

std::vector<std::string> grid_problems(const JobSpec& spec) {
  if (spec.grid.empty())
    return spec.grid_zip ? std::vector<std::string>{"grid_zip: there is no grid"}
                         : std::vector<std::string>{};
  const auto grid = Grid::parse(spec.grid, spec.grid_zip);
  if (!grid) return {fmt::format("grid: {}", grid.error().text())};
  std::vector<std::string> faults;
  for (const std::string& name : grid->names()) {
    if (!is_used(spec, name))
      faults.push_back(
          fmt::format("grid: {0} is used nowhere: write {{{0}}} in the command, or read {1}", name,
                      grid_variable(name)));
  }
  for (const std::string_view text : places_of(spec)) {
    for_each_name(text, [&](std::size_t, std::string_view name) {
      if (!grid->has(name))
        faults.push_back(fmt::format("grid: {{{}}} is no parameter (there are: {})", name,
                                     fmt::join(grid->names(), ", ")));
    });
  }
  if (spec.array && !spec.array->indices.empty() &&
      static_cast<std::size_t>(spec.array->indices.back()) >= grid->size())
    faults.push_back(fmt::format("array: {} is no combination of the grid, which has {} (0 to {})",
                                 spec.array->indices.back(), grid->size(), grid->size() - 1));
  return faults;
}

}  // namespace berth

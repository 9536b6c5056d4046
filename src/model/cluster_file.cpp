// The YAML cluster file. Everything in it is checked against what docs/formats/cluster.md allows,
// and all faults are reported together, each with its place. A first pass over the parser's events
// refuses what a cluster file never needs (self-references, crowds of aliases, deep nesting), so
// that the second one may walk the tree without fear.
#include "model/cluster.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/suggest.h"

namespace berth {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20U;
constexpr std::size_t kMaxMessages = 20;
constexpr std::size_t kMaxDepth = 12;
constexpr std::size_t kMaxAliases = 1000;
constexpr std::string_view kExample =
    "begin with\n  groups:\n    - {count: 16, gpus: 4, type: v100}";

/// Text from the file as a message may show it: short, and no control characters.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result) {
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '?';
  }
  return text.size() > 40 ? result + "…" : result;
}

std::string at(const std::string& file, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}", file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
}

/// Looks at the events of the parser only: how deep, how many documents, which aliases.
class ShapeGuard final : public YAML::EventHandler {
 public:
  explicit ShapeGuard(const std::string& file) : file_(file) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) wrong(mark, "a second document begins (one cluster per file)");
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
      wrong(mark,
            fmt::format("nested deeper than {} levels (a cluster file needs four)", kMaxDepth));
  }
  void wrong(const YAML::Mark& mark, std::string_view what) {
    if (problem_.empty()) problem_ = fmt::format("{}: {}", at(file_, mark), what);
  }

  const std::string& file_;
  std::vector<YAML::anchor_t> open_;
  std::size_t documents_ = 0;
  std::size_t aliases_ = 0;
  std::string problem_;
};

struct Range {
  double low = 0;
  double high = 0;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 200 && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

/// One "[001-016,020]" as its numbers, zero-padded as written; nothing if it is malformed.
std::optional<std::vector<std::string>> expand_bracket(std::string_view inside) {
  std::vector<std::string> numbers;
  const auto parse = [](std::string_view text) -> std::optional<std::int64_t> {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool digits =
        !text.empty() && text.size() <= 9 && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
    if (!digits || code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
  };
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t end = std::min(inside.find(',', begin), inside.size());
    const std::string_view part = inside.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const auto low = parse(first);
    const auto high = dash == std::string_view::npos ? low : parse(part.substr(dash + 1));
    if (!low || !high || *low > *high || *high - *low >= kMaxNodes || numbers.size() > kMaxNodes)
      return std::nullopt;
    for (std::int64_t n = *low; n <= *high; ++n)
      numbers.push_back(fmt::format("{:0{}}", n, first.size()));
  }
  return numbers;
}

/// "n[01-16]", "r[1-2]n[1-8]", "login": the names it stands for; nothing if it is malformed or too
/// many.
std::optional<std::vector<std::string>> expand_names(std::string_view pattern) {
  std::vector<std::string> names{""};
  while (!pattern.empty()) {
    const std::size_t open = std::min(pattern.find('['), pattern.size());
    for (std::string& name : names) name += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const std::size_t close = pattern.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const auto numbers = expand_bracket(pattern.substr(1, close - 1));
    pattern.remove_prefix(close + 1);
    if (!numbers || names.size() * numbers->size() > static_cast<std::size_t>(kMaxNodes))
      return std::nullopt;
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers->size());
    for (const std::string& name : names) {
      for (const std::string& number : *numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
  }
  if (!std::ranges::all_of(names, is_name)) return std::nullopt;
  return names;
}

class ClusterReader {
 public:
  explicit ClusterReader(const std::string& file) : file_(file) { cluster_.name = file; }

  Result<Cluster> read(const YAML::Node& root) {
    static const std::array<std::string, 4> kKeys{"name", "devices", "links", "groups"};
    if (!root.IsMap())
      return fail(
          fmt::format("{}: a cluster file is a mapping ({})", at(file_, root.Mark()), kExample));
    check_keys(root, kKeys, "the file");
    if (const auto name = text(root, "name")) cluster_.name = *name;
    read_devices(child(root, "devices"));
    read_links(child(root, "links"));
    const YAML::Node groups = child(root, "groups");
    if (!groups.IsDefined()) {
      wrong(root.Mark(), fmt::format("no groups of nodes ({})", kExample));
    } else if (!groups.IsSequence() || groups.size() == 0) {
      wrong(groups.Mark(),
            "groups must be a list with one entry per kind of node (start each with '- ')");
    } else {
      for (const YAML::Node& group : groups) find_named_racks(group);
      for (const YAML::Node& group : groups) read_group(group);
    }
    if (unsaid_ > 0) error_.messages.push_back(fmt::format("{}: and {} more", file_, unsaid_));
    if (!error_.messages.empty()) return tl::unexpected<Error>(std::move(error_));
    return std::move(cluster_);
  }

 private:
  void wrong(const YAML::Mark& mark, std::string_view what) {
    if (error_.messages.size() < kMaxMessages)
      error_.messages.push_back(fmt::format("{}: {}", at(file_, mark), what));
    else
      ++unsaid_;
  }

  void check_keys(const YAML::Node& map, std::span<const std::string> known,
                  std::string_view where) {
    std::vector<std::string> seen;
    for (const auto& entry : map) {
      const YAML::Node& key = entry.first;
      if (!key.IsScalar()) {
        wrong(key.Mark(), fmt::format("a key of {} must be a word", where));
      } else if (const std::string& word = key.Scalar();
                 std::ranges::find(known, word) == known.end()) {
        wrong(key.Mark(), fmt::format("{} has no key '{}'{}", where, shown(word),
                                      suggestion(shown(word), known)));
      } else if (std::ranges::find(seen, word) != seen.end()) {
        wrong(key.Mark(), fmt::format("'{}' is given twice (keep one)", word));
      } else {
        seen.push_back(word);
      }
    }
  }

  /// The value under a key; undefined if there is none.
  static YAML::Node child(const YAML::Node& map, std::string_view key) {
    for (const auto& entry : map) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
    }
    return YAML::Node{YAML::NodeType::Undefined};
  }

  std::optional<double> number(const YAML::Node& map, std::string_view key, Range range) {
    const YAML::Node node = child(map, key);
    if (!node.IsDefined()) return std::nullopt;
    double value = 0;
    const std::string word = node.IsScalar() ? node.Scalar() : "";
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool good = !word.empty() && code == std::errc{} && end == word.data() + word.size() &&
                      std::isfinite(value);
    if (!good || value < range.low || value > range.high) {
      const std::string got = node.IsScalar() ? fmt::format("'{}'", shown(word))
                              : node.IsNull() ? "nothing"
                                              : "a list or mapping";
      wrong(node.Mark(), fmt::format("{} must be a number from {} to {}, got {}", key, range.low,
                                     range.high, got));
      return std::nullopt;
    }
    return value;
  }

  std::optional<std::int32_t> whole(const YAML::Node& map, std::string_view key, Range range) {
    const auto value = number(map, key, range);
    if (value && *value != std::floor(*value)) {
      wrong(child(map, key).Mark(), fmt::format("{} must be a whole number, got {}", key, *value));
      return std::nullopt;
    }
    if (!value) return std::nullopt;
    return static_cast<std::int32_t>(*value);
  }

  std::optional<std::string> text(const YAML::Node& map, std::string_view key) {
    const YAML::Node node = child(map, key);
    if (!node.IsDefined()) return std::nullopt;
    if (!node.IsScalar() || node.Scalar().empty() || node.Scalar().size() > 200) {
      wrong(node.Mark(), fmt::format("{} must be a short text", key));
      return std::nullopt;
    }
    return shown(node.Scalar());
  }

  std::optional<std::string> name(const YAML::Node& map, std::string_view key) {
    auto word = text(map, key);
    if (word && !is_name(*word)) {
      wrong(child(map, key).Mark(),
            fmt::format("{} must be made of letters, digits, '-', '_' and '.', got '{}'", key,
                        *word));
      return std::nullopt;
    }
    return word;
  }

  void read_devices(const YAML::Node& rows) {
    static const std::array<std::string, 5> kKeys{"name", "memory_gb", "speed", "idle_watts",
                                                  "busy_watts"};
    if (!rows.IsDefined()) return;
    if (!rows.IsSequence())
      return wrong(rows.Mark(), "devices must be a list (start each device with '- ')");
    for (const YAML::Node& row : rows) {
      if (!row.IsMap()) {
        wrong(row.Mark(), "a device is a mapping, as in {name: l40, memory_gb: 48, speed: 1.6}");
        continue;
      }
      check_keys(row, kKeys, "a device");
      const auto type = name(row, "name");
      if (!type && !child(row, "name").IsDefined()) wrong(row.Mark(), "a device needs a name");
      const auto built_in = type ? find_device(*type) : std::nullopt;
      DeviceType device = built_in.value_or(DeviceType{});
      if (const auto memory = number(row, "memory_gb", {1, 10'000}))
        device.memory_mib = std::llround(*memory * 1024);
      else if (!built_in && !child(row, "memory_gb").IsDefined())
        wrong(row.Mark(), "a device that is not built in needs memory_gb");
      device.speed = number(row, "speed", {0.001, 1000}).value_or(device.speed);
      device.idle_watts = number(row, "idle_watts", {0, 100'000}).value_or(device.idle_watts);
      device.busy_watts = number(row, "busy_watts", {0, 100'000}).value_or(device.busy_watts);
      if (device.busy_watts < device.idle_watts)
        wrong(row.Mark(), "busy_watts must be at least idle_watts");
      if (!type) continue;
      device.name = lower(*type);
      if (std::ranges::find(devices_, device.name, &DeviceType::name) != devices_.end()) {
        wrong(row.Mark(), fmt::format("device '{}' is described twice (keep one)", device.name));
      }
      devices_.push_back(device);
    }
  }

  void read_links(const YAML::Node& node) {
    static const std::array<std::string, 5> kKeys{"nvlink", "pcie", "socket", "rack", "cross_rack"};
    if (!node.IsDefined()) return;
    if (!node.IsMap())
      return wrong(node.Mark(),
                   "links must be a mapping, as in {nvlink: 130, rack: 12.5} in GB per second");
    check_keys(node, kKeys, "links");
    Links& links = cluster_.links;
    const std::array<double*, 5> targets{&links.nvlink, &links.pcie, &links.socket, &links.rack,
                                         &links.cross_rack};
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (const auto gigabytes = number(node, kKeys[i], {0.001, 100'000}))
        *targets[i] = *gigabytes * 1e9;
    }
  }

  /// Racks named by the file are known before any is numbered, so that a numbered one never takes a
  /// name.
  void find_named_racks(const YAML::Node& group) {
    if (!group.IsMap()) return;
    const YAML::Node rack = child(group, "rack");
    if (rack.IsScalar()) named_racks_.insert(rack.Scalar());
  }

  RackId rack_named(const std::string& rack) {
    const auto [entry, fresh] =
        rack_ids_.try_emplace(rack, RackId{static_cast<std::uint32_t>(cluster_.racks.size())});
    if (fresh) cluster_.racks.push_back(rack);
    return entry->second;
  }

  RackId numbered_rack() {
    for (;;) {
      const std::string rack = fmt::format("r{}", next_rack_++);
      if (!named_racks_.contains(rack)) return rack_named(rack);
    }
  }

  PoolId pool_of(const YAML::Node& group) {
    const std::string type = lower(name(group, "type").value_or("gpu"));
    // 0 = not said
    const std::int64_t memory_mib =
        std::llround(number(group, "device_memory_gb", {1, 10'000}).value_or(0) * 1024);
    for (std::uint32_t i = 0; i < cluster_.pools.size(); ++i) {
      if (cluster_.pools[i].name != type) continue;
      if (memory_mib > 0 && memory_mib != cluster_.pools[i].memory_mib) {
        wrong(child(group, "device_memory_gb").Mark(),
              fmt::format("'{}' has {} GB elsewhere in this file (give the other kind its own name "
                          "under devices)",
                          type, static_cast<double>(cluster_.pools[i].memory_mib) / 1024));
      }
      return PoolId{i};
    }
    DeviceType device;
    if (const auto own = std::ranges::find(devices_, type, &DeviceType::name);
        own != devices_.end()) {
      device = *own;
    } else if (const auto built_in = find_device(type)) {
      device = *built_in;
    } else {
      std::vector<std::string> known;
      for (const DeviceType& one : devices_) known.push_back(one.name);
      for (const DeviceType& one : built_in_devices()) known.push_back(one.name);
      wrong(child(group, "type").Mark(),
            fmt::format("no device type is called '{}'{}; a new one needs a row under devices",
                        type, suggestion(type, known)));
      return PoolId{};
    }
    if (memory_mib > 0) device.memory_mib = memory_mib;
    cluster_.pools.push_back(std::move(device));
    return PoolId{static_cast<std::uint32_t>(cluster_.pools.size() - 1)};
  }

  std::vector<std::string> names_of(const YAML::Node& group) {
    const YAML::Node nodes = child(group, "nodes");
    const YAML::Node count = child(group, "count");
    const std::string prefix = name(group, "prefix").value_or("n");
    if (nodes.IsDefined() == count.IsDefined()) {
      wrong(group.Mark(),
            "a group says either nodes (a name range such as \"n[001-016]\") or count, not both or "
            "neither");
      return {};
    }
    std::vector<std::string> names;
    if (count.IsDefined()) {
      const std::int32_t wanted = whole(group, "count", {1, kMaxNodes}).value_or(0);
      for (std::int32_t i = 0; i < wanted; ++i)
        names.push_back(fmt::format("{}{}", prefix, next_number_[prefix]++));
      return names;
    }
    const auto add = [&](const YAML::Node& pattern) {
      const auto expanded = pattern.IsScalar() ? expand_names(pattern.Scalar()) : std::nullopt;
      if (!expanded || names.size() + expanded->size() > static_cast<std::size_t>(kMaxNodes)) {
        return wrong(pattern.Mark(),
                     fmt::format("'{}' is no node name or range of at most {} nodes (as in n7, "
                                 "n[001-016] or n[1-4,9])",
                                 pattern.IsScalar() ? shown(pattern.Scalar()) : "?", kMaxNodes));
      }
      names.insert(names.end(), expanded->begin(), expanded->end());
    };
    if (child(group, "prefix").IsDefined())
      wrong(child(group, "prefix").Mark(), "prefix goes with count, not with nodes");
    if (!nodes.IsSequence())
      add(nodes);
    else
      for (const YAML::Node& pattern : nodes) add(pattern);
    return names;
  }

  void read_power(const YAML::Node& group, Node& node) {
    static const std::array<std::string, 2> kKeys{"idle_watts", "busy_watts"};
    const YAML::Node power = child(group, "power");
    if (!power.IsDefined()) return;
    if (!power.IsMap())
      return wrong(power.Mark(),
                   "power must be a mapping, as in {idle_watts: 300, busy_watts: 700}");
    check_keys(power, kKeys, "power");
    node.idle_watts = number(power, "idle_watts", {0, 1'000'000}).value_or(0);
    node.busy_watts = number(power, "busy_watts", {0, 1'000'000}).value_or(node.idle_watts);
    if (node.busy_watts < node.idle_watts)
      wrong(power.Mark(), "busy_watts must be at least idle_watts");
  }

  Node read_node(const YAML::Node& group) {
    Node node;
    if (!child(group, "gpus").IsDefined())
      wrong(group.Mark(), "a group needs gpus, the number of GPUs in each of its nodes");
    node.gpus = whole(group, "gpus", {1, kMaxGpusPerNode}).value_or(1);
    node.pool = pool_of(group);
    node.cpus_milli = std::llround(number(group, "cpus", {0.001, 100'000}).value_or(0) * 1000);
    node.memory_mib =
        std::llround(number(group, "memory_gb", {0.001, 1'000'000}).value_or(0) * 1024);
    node.shape.sockets = whole(group, "sockets", {1, 64}).value_or(1);
    node.shape.switches = whole(group, "switches", {0, 64}).value_or(0);
    node.shape.nvlink_island = whole(group, "nvlink_island", {0, kMaxGpusPerNode}).value_or(0);
    if (node.shape.nvlink_island > node.gpus) {
      wrong(child(group, "nvlink_island").Mark(),
            fmt::format("nvlink_island is {} but a node has {} GPUs", node.shape.nvlink_island,
                        node.gpus));
    }
    read_power(group, node);
    return node;
  }

  void read_group(const YAML::Node& group) {
    static const std::array<std::string, 14> kKeys{
        "nodes",         "count",     "prefix",           "gpus",    "type",
        "cpus",          "memory_gb", "device_memory_gb", "sockets", "switches",
        "nvlink_island", "rack",      "nodes_per_rack",   "power"};
    if (!group.IsMap())
      return wrong(group.Mark(), "a group is a mapping, as in {count: 16, gpus: 4, type: v100}");
    check_keys(group, kKeys, "a group");
    const std::vector<std::string> names = names_of(group);
    Node node = read_node(group);
    const auto rack = name(group, "rack");
    const auto per_rack = whole(group, "nodes_per_rack", {1, kMaxNodes});
    if (child(group, "rack").IsDefined() && child(group, "nodes_per_rack").IsDefined()) {
      wrong(child(group, "rack").Mark(),
            "a group says rack (one for all its nodes) or nodes_per_rack, not both");
    }
    if (cluster_.nodes.size() + names.size() > static_cast<std::size_t>(kMaxNodes)) {
      return wrong(group.Mark(), fmt::format("more than {} nodes in all", kMaxNodes));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (rack)
        node.rack = rack_named(*rack);
      else if (per_rack && i % static_cast<std::size_t>(*per_rack) == 0)
        node.rack = numbered_rack();
      else if (!per_rack)
        node.rack = common_rack();
      node.name = names[i];
      if (!node_names_.insert(node.name).second) {
        wrong(group.Mark(),
              fmt::format("two nodes are called '{}' (names must differ)", shown(node.name)));
      }
      cluster_.nodes.push_back(node);
    }
  }

  RackId common_rack() {  // of all groups that say nothing of racks
    if (!common_rack_) common_rack_ = numbered_rack();
    return *common_rack_;
  }

  const std::string& file_;
  Cluster cluster_;
  Error error_;
  std::size_t unsaid_ = 0;
  std::vector<DeviceType> devices_;
  std::unordered_set<std::string> node_names_;
  std::unordered_set<std::string> named_racks_;
  std::unordered_map<std::string, RackId> rack_ids_;
  std::unordered_map<std::string, std::int32_t> next_number_;
  std::optional<RackId> common_rack_;
  std::int32_t next_rack_ = 0;
};

Result<void> check_shape(const std::string& text, const std::string& name) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  ShapeGuard guard(name);
  while (parser.HandleNextDocument(guard)) {
    if (!guard.problem().empty()) return fail(guard.problem());
  }
  if (!guard.saw_document())
    return fail(fmt::format("{}:1:1: the file is empty ({})", name, kExample));
  return {};
}

}  // namespace

Result<Cluster> parse_cluster_yaml(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes)
    return fail(
        fmt::format("{}:1:1: larger than {} bytes (is this a cluster file?)", name, kMaxFileBytes));
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n') + 1;
    return fail(
        fmt::format("{}:{}:1: not a text file (a cluster file is YAML in UTF-8)", name, line));
  }
  try {  // yaml-cpp throws; nothing of it leaves this function
    const std::string owned(text);
    BERTH_TRY_VOID(check_shape(owned, name));
    return ClusterReader(name).read(YAML::Load(owned));
  } catch (const YAML::Exception& problem) {
    return fail(fmt::format("{}: {} (YAML: keys are 'key: value', lists begin with '- ', no tabs)",
                            at(name, problem.mark), problem.msg));
  } catch (const std::exception& problem) {
    return fail(fmt::format("{}:1:1: cannot read: {}", name, problem.what()));
  }
}

}  // namespace berth

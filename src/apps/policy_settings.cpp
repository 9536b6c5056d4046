#include "apps/policy_settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/complaints.h"
#include "base/suggest.h"
#include "policies/registry.h"

namespace berth {

Result<std::vector<std::string>> policy_list(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const PolicyEntry& entry : policy_registry()) names.push_back(entry.name);
    return names;
  }
  Complaints complaints;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    begin = end + 1;
    std::erase(name, ' ');
    if (name.empty()) continue;
    if (const auto found = find_policy(name); !found) complaints.add(found.error());
    if (std::ranges::find(names, name) != names.end())
      complaints.add(Error{fmt::format("--policies: '{}' is named twice", name)});
    names.push_back(std::move(name));
  }
  if (!complaints.any()) return names;
  std::vector<std::string> known;
  for (const PolicyEntry& entry : policy_registry()) known.push_back(entry.name);
  complaints.add(Error{fmt::format("the policies are: {}", fmt::join(known, ", "))});
  return complaints.take();
}

Result<std::vector<Settings>> route_settings(const std::vector<std::string>& policies,
                                             const std::vector<std::string>& texts) {
  std::vector<Settings> routed(policies.size());
  std::vector<const PolicyEntry*> entries;
  std::vector<std::string> known;
  for (const std::string& policy : policies) {
    BERTH_TRY(const PolicyEntry* entry, find_policy(policy));
    entries.push_back(entry);
    for (const ParamSpec& param : entry->params) {
      if (std::ranges::find(known, param.key) == known.end()) known.push_back(param.key);
    }
  }
  Complaints complaints;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      complaints.add(Error{fmt::format("--set {}: write KEY=VALUE or POLICY.KEY=VALUE", text)});
      continue;
    }
    std::string key = text.substr(0, equals);
    std::string owner;
    if (const std::size_t dot = key.find('.'); dot != std::string::npos) {
      owner = key.substr(0, dot);
      key = key.substr(dot + 1);
      if (std::ranges::find(policies, owner) == policies.end()) {
        complaints.add(Error{fmt::format("--set {}: policy '{}' is not in this run{}", text, owner,
                                         suggestion(owner, policies))});
        continue;
      }
    }
    bool taken = false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const bool has =
          std::ranges::find(entries[i]->params, key, &ParamSpec::key) != entries[i]->params.end();
      if (!has || (!owner.empty() && policies[i] != owner)) continue;
      routed[i].emplace_back(key, text.substr(equals + 1));
      taken = true;
    }
    if (taken) continue;
    const std::string who = !owner.empty() ? owner : policies.size() == 1 ? policies[0] : "";
    complaints.add(Error{
        fmt::format("--set {}: {} parameter '{}'{}{}", text,
                    who.empty() ? "none of the policies has a" : fmt::format("'{}' has no", who),
                    key, known.empty() ? "" : suggestion(key, known),
                    who.empty() ? "" : fmt::format("; see `berth policies {}`", who))});
  }
  if (complaints.any()) return complaints.take();
  return routed;
}

}  // namespace berth

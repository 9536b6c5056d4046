#include "api/route.h"

#include <algorithm>

#include "base/split.h"

namespace berth::api {

namespace {

struct Table {
  std::vector<Route> routes = make_routes();
  std::vector<std::vector<std::string_view>> parts;  // of each path

  Table() {
    for (const Route& route : routes) parts.push_back(split(route.path.substr(1), '/'));
  }
};

const Table& table() {  // never changes
  static const Table the;
  return the;
}

bool is_place_holder(std::string_view part) { return part.starts_with('{'); }

bool fits(const std::vector<std::string_view>& pattern, const std::vector<std::string>& path) {
  return std::ranges::equal(pattern, path, [](std::string_view part, const std::string& given) {
    return is_place_holder(part) ? !given.empty() : part == given;
  });
}

/// "/jobs/actions" before "/jobs/{job}": a word that is written out wins.
bool is_more_exact(const std::vector<std::string_view>& one,
                   const std::vector<std::string_view>& other) {
  return std::ranges::count_if(one, is_place_holder) <
         std::ranges::count_if(other, is_place_holder);
}

}  // namespace

const std::vector<Route>& routes() { return table().routes; }

Match match_route(Method method, const Target& target) {
  const Table& all = table();
  const std::vector<std::string_view>* best = nullptr;
  for (const auto& parts : all.parts) {
    if (fits(parts, target.path) && (best == nullptr || is_more_exact(parts, *best))) best = &parts;
  }
  Match match;
  if (best == nullptr) return match;
  const Method wanted = method == Method::Head ? Method::Get : method;
  for (std::size_t i = 0; i < all.routes.size(); ++i) {
    if (all.parts[i] != *best) continue;
    const Route& route = all.routes[i];
    if (!match.allowed.empty()) match.allowed += ", ";
    match.allowed += to_string(route.method);
    if (route.method == Method::Get) match.allowed += ", HEAD";
    if (route.method == wanted) match.route = &route;
  }
  for (std::size_t i = 0; i < best->size(); ++i) {
    if (is_place_holder((*best)[i])) match.arguments.push_back(target.path[i]);
  }
  return match;
}

}  // namespace berth::api

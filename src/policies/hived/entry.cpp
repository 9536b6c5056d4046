#include "policies/hived/entry.h"

#include <charconv>

#include "policies/hived/hived.h"

namespace berth {

namespace {

template <class T>
bool read(std::string_view text, T& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() && number > 0;
}

/// "8x2+4x1": two cells of eight devices and one of four.
bool read_cells(std::string_view text, hived::OwnedCells& cells) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t cross = part.find('x');
    if (cross == std::string_view::npos) return false;
    std::int32_t size = 0;
    std::int32_t count = 0;
    if (!read(part.substr(0, cross), size) || !read(part.substr(cross + 1), count)) return false;
    cells.emplace_back(size, count);
  }
  return true;
}

Result<hived::Ownership> ownership_of(const Params& params) {
  hived::Ownership ownership;
  const std::string& text = params.text("cells");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = part.find(':');
    const std::string tenant(part.substr(0, colon));
    const bool good = colon != std::string_view::npos && !tenant.empty() &&
                      read_cells(part.substr(colon + 1), ownership[tenant]);
    if (!good)
      return params.wrong("cells", "must be TENANT:SIZExCOUNT[+SIZExCOUNT…], as in lab:8x2+4x1");
  }
  return ownership;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(auto ownership, ownership_of(params));
  return std::make_unique<hived::Hived>(std::move(ownership));
}

}  // namespace

PolicyEntry hived_entry() {
  return {.name = "hived",
          .summary =
              "tenants own cells with their topology; others are preemptible guests on free ones",
          .params =
              {{"cells", "",
                "TENANT:SIZExCOUNT[+SIZExCOUNT…], comma separated: cells of SIZE devices a tenant "
                "owns; tenant is a job's group, else its user"}},
          .make = make};
}

}  // namespace berth

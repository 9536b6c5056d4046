#include <utility>

#include "apps/commands.h"
#include "base/json_writer.h"
#include "base/text_table.h"
#include "perf/estimator.h"
#include "placements/placements.h"
#include "trace/reader.h"

namespace berth {

namespace {

struct Listing {
  std::string title;
  std::vector<std::pair<std::string, std::string>> rows;  // name, what it is
};

Listing listing_of(ListKind kind) {
  Listing listing;
  switch (kind) {
    case ListKind::Placements:
      listing.title = "placement";
      for (const PlacementInfo& info : placements())
        listing.rows.emplace_back(info.name, info.summary);
      break;
    case ListKind::Estimators:
      listing.title = "estimator";
      for (const EstimatorInfo& info : estimators())
        listing.rows.emplace_back(info.form, info.summary);
      break;
    case ListKind::Formats:
      listing.title = "format";
      for (const FormatInfo& info : trace_formats())
        listing.rows.emplace_back(info.name, info.description);
      break;
  }
  return listing;
}

}  // namespace

Exit execute(const ListOptions& options) {
  const Listing listing = listing_of(options.kind);
  if (options.json) {
    JsonWriter json;
    json.begin_array();
    for (const auto& [name, summary] : listing.rows) {
      json.begin_object().field("name", name).field("summary", summary).end_object();
    }
    json.end_array();
    return write_stdout(json.str() + "\n");
  }
  TextTable table({{listing.title, Align::Left}, {"what it is", Align::Left}});
  for (const auto& [name, summary] : listing.rows) table.add_row({name, summary});
  return write_stdout(table.str());
}

Exit execute(const PrintOptions& options) { return write_stdout(options.text); }

}  // namespace berth

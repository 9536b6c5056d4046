#include "report/live_report.h"

#include "report/html.h"
#include "report/run_fields.h"
#include "wire/writer.h"

namespace berth {

std::string live_report_json(const LiveEnergy& energy) {
  return wire::to_json(ReportData{.title = energy.title, .live = energy});
}

std::string live_report_html(const LiveEnergy& energy) {
  return page_with(live_report_json(energy));
}

}  // namespace berth

// The report page of a live scheduler: what it has used, by job, by user, by node and what the node
// was doing. Everything in kWh.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace berth {

struct LiveEnergy {
  struct Job {
    std::string id, name, user, state;
    double kwh = 0;
  };
  struct Node {
    std::string name;
    std::map<std::string, double> kwh;  // by what it was doing
  };
  std::string title;
  std::vector<Job> jobs;
  std::map<std::string, double> users;
  std::vector<Node> nodes;
  double nobody = 0;
};

/// As `live` of docs/formats/outputs.md.
[[nodiscard]] std::string live_report_json(const LiveEnergy& energy);
[[nodiscard]] std::string live_report_html(const LiveEnergy& energy);

}  // namespace berth

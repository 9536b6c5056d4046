// ledger_digest STATE-DIRECTORY: what the journal there adds up to, in four lines. Opens it as the
// scheduler does, so give it a copy.
#include <cstdio>

#include <fmt/format.h>

#include "store/sqlite_store.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: ledger_digest STATE-DIRECTORY\n", stderr);
    return 2;
  }
  const auto store = berth::SqliteStore::open({.directory = argv[1]});
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().text());
    return 1;
  }
  const auto ledger = (*store)->recover();
  if (!ledger) {
    fmt::print(stderr, "{}\n", ledger.error().text());
    return 1;
  }
  const auto records = (*store)->verify();
  if (!records) {
    fmt::print(stderr, "{}\n", records.error().text());
    return 1;
  }
  fmt::print("digest {}\nlive {}\nnext {}\nrecords {}\n", ledger->digest(), ledger->jobs().size(),
             ledger->next_number(), *records);
}

// 128-bit integers for keys such as work x GPUs x fixed-point rate, which do not fit in 64 bits.
#pragma once

namespace berth {
__extension__ using Int128 = __int128;
}

// How much of a busy processor a thread of ours gets beside the threads that compute.
#pragma once

namespace neuroshard::platform {

// The calling thread gives way to the others from now on: where every processor is busy it keeps less
// than one per cent of one, where one is idle it runs at full speed. For threads that write files while
// others compute. It cannot be taken back without privileges. No effect on systems without such a knob.
void run_in_background();

}  // namespace neuroshard::platform

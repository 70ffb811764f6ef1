<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>neuroshard::gui::CoreWords</name>
    <message numerus="yes">
        <source>The core crashed %n time(s) within ten minutes and now runs without training. Checkpoints, wallet and logs are available; data and settings are unchanged.</source>
        <translation>
            <numerusform>The core crashed %n time within ten minutes and now runs without training. Checkpoints, wallet and logs are available; data and settings are unchanged.</numerusform>
            <numerusform>The core crashed %n times within ten minutes and now runs without training. Checkpoints, wallet and logs are available; data and settings are unchanged.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Training resumes from the last checkpoint. The core crashed %n time(s) within ten minutes; after three crashes it starts in safe mode. Diagnostics has the details.</source>
        <translation>
            <numerusform>Training resumes from the last checkpoint. The core crashed %n time within ten minutes; after three crashes it starts in safe mode. Diagnostics has the details.</numerusform>
            <numerusform>Training resumes from the last checkpoint. The core crashed %n times within ten minutes; after three crashes it starts in safe mode. Diagnostics has the details.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The core restarts in %n second(s).</source>
        <translation>
            <numerusform>The core restarts in %n second.</numerusform>
            <numerusform>The core restarts in %n seconds.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::CapacityWords</name>
    <message numerus="yes">
        <source>said by %1 of %n member(s)</source>
        <translation>
            <numerusform>said by %1 of %n member</numerusform>
            <numerusform>said by %1 of %n members</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n member(s)</source>
        <translation>
            <numerusform>%n member</numerusform>
            <numerusform>%n members</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>offered by %1 of %n member(s)</source>
        <translation>
            <numerusform>offered by %1 of %n member</numerusform>
            <numerusform>offered by %1 of %n members</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The model changes by itself after %n round(s) in a row with enough memory for a larger one, or too little for this one.</source>
        <translation>
            <numerusform>The model changes by itself after %n round in a row with enough memory for a larger one, or too little for this one.</numerusform>
            <numerusform>The model changes by itself after %n rounds in a row with enough memory for a larger one, or too little for this one.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The next model, %1, needs %2 of each member and, with a reserve, %3 of all: %n of %4 have room, %5 are offered.</source>
        <translation>
            <numerusform>The next model, %1, needs %2 of each member and, with a reserve, %3 of all: %n of %4 has room, %5 are offered.</numerusform>
            <numerusform>The next model, %1, needs %2 of each member and, with a reserve, %3 of all: %n of %4 have room, %5 are offered.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n of %1 offer that, and %2 would have to.</source>
        <translation>
            <numerusform>%n of %1 offers that, and %2 would have to.</numerusform>
            <numerusform>%n of %1 offer that, and %2 would have to.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The network changes to it after %n round(s) with enough memory.</source>
        <translation>
            <numerusform>The network changes to it after %n round with enough memory.</numerusform>
            <numerusform>The network changes to it after %n rounds with enough memory.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The network changes to a larger model after %n more round(s) with enough memory.</source>
        <translation>
            <numerusform>The network changes to a larger model after %n more round with enough memory.</numerusform>
            <numerusform>The network changes to a larger model after %n more rounds with enough memory.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The network changes to a smaller model after %n more round(s) with too little memory.</source>
        <translation>
            <numerusform>The network changes to a smaller model after %n more round with too little memory.</numerusform>
            <numerusform>The network changes to a smaller model after %n more rounds with too little memory.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The network changes to a smaller model after %n round(s) with too little memory.</source>
        <translation>
            <numerusform>The network changes to a smaller model after %n round with too little memory.</numerusform>
            <numerusform>The network changes to a smaller model after %n rounds with too little memory.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The present model needs %1 of each member and %2 of all: %n of %3 have room, %4 are offered.</source>
        <translation>
            <numerusform>The present model needs %1 of each member and %2 of all: %n of %3 has room, %4 are offered.</numerusform>
            <numerusform>The present model needs %1 of each member and %2 of all: %n of %3 have room, %4 are offered.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::CheckpointActions</name>
    <message numerus="yes">
        <source>Delete %n checkpoint(s)?</source>
        <translation>
            <numerusform>Delete %n checkpoint?</numerusform>
            <numerusform>Delete %n checkpoints?</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Removing %n old checkpoint(s)</source>
        <translation>
            <numerusform>Removing %n old checkpoint</numerusform>
            <numerusform>Removing %n old checkpoints</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::IdentityPage</name>
    <message numerus="yes">
        <source>A wallet has 12 words, or a wallet token of 64 characters; this is %n word(s).</source>
        <translation>
            <numerusform>A wallet has 12 words, or a wallet token of 64 characters; this is %n word.</numerusform>
            <numerusform>A wallet has 12 words, or a wallet token of 64 characters; this is %n words.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::LimitsPage</name>
    <message numerus="yes">
        <source>%1: %n of %2 threads, %3 of memory</source>
        <translation>
            <numerusform>%1: %n of %2 threads, %3 of memory</numerusform>
            <numerusform>%1: %n of %2 threads, %3 of memory</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::LogModel</name>
    <message numerus="yes">
        <source>The core did not keep %1 line(s).</source>
        <translation>
            <numerusform>The core did not keep %1 line.</numerusform>
            <numerusform>The core did not keep %1 lines.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::LogsPage</name>
    <message numerus="yes">
        <source>copying %1 line(s) …</source>
        <translation>
            <numerusform>copying %1 line …</numerusform>
            <numerusform>copying %1 lines …</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 line(s) copied</source>
        <translation>
            <numerusform>%1 line copied</numerusform>
            <numerusform>%1 lines copied</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::OverviewPage</name>
    <message numerus="yes">
        <source>%n layer(s)</source>
        <translation>
            <numerusform>%n layer</numerusform>
            <numerusform>%n layers</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n expert(s)</source>
        <translation>
            <numerusform>%n expert</numerusform>
            <numerusform>%n experts</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n thread(s) allowed</source>
        <translation>
            <numerusform>%n thread allowed</numerusform>
            <numerusform>%n threads allowed</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::PruneDialog</name>
    <message numerus="yes">
        <source>No checkpoint would be removed; %n stay.</source>
        <translation>
            <numerusform>Nothing would be removed; %n stays.</numerusform>
            <numerusform>No checkpoint would be removed; %n stay.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::RoundsCards</name>
    <message numerus="yes">
        <source>This node&apos;s contribution was left out %n time(s); the last time: %1</source>
        <translation>
            <numerusform>This node&apos;s contribution was left out %n time; the last time: %1</numerusform>
            <numerusform>This node&apos;s contribution was left out %n times; the last time: %1</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n contribution(s) from here</source>
        <translation>
            <numerusform>%n contribution from here</numerusform>
            <numerusform>%n contributions from here</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>of %n wallet(s)</source>
        <translation>
            <numerusform>of %n wallet</numerusform>
            <numerusform>of %n wallets</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>tokens, %1 step(s)</source>
        <translation>
            <numerusform>tokens, %1 step</numerusform>
            <numerusform>tokens, %1 steps</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::StateWords</name>
    <message numerus="yes">
        <source> (and %n more)</source>
        <translation>
            <numerusform> (and %n more)</numerusform>
            <numerusform> (and %n more)</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::StatusLine</name>
    <message numerus="yes">
        <source>%n thread(s)</source>
        <translation>
            <numerusform>%n thread</numerusform>
            <numerusform>%n threads</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::TogetherCard</name>
    <message numerus="yes">
        <source>%n member(s)</source>
        <translation>
            <numerusform>%n member</numerusform>
            <numerusform>%n members</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::TrainingPage</name>
    <message numerus="yes">
        <source>%n node(s) joined</source>
        <translation>
            <numerusform>%n node joined</numerusform>
            <numerusform>%n nodes joined</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 step(s) done</source>
        <translation>
            <numerusform>%1 step done</numerusform>
            <numerusform>%1 steps done</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::WhatIfWords</name>
    <message numerus="yes">
        <source>%1 needs room at %n more member(s).</source>
        <translation>
            <numerusform>%1 needs room at %n more member.</numerusform>
            <numerusform>%1 needs room at %n more members.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 needs %2 more, and room at %n more member(s).</source>
        <translation>
            <numerusform>%1 needs %2 more, and room at %n more member.</numerusform>
            <numerusform>%1 needs %2 more, and room at %n more members.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>After %n round(s) in a row with that memory the model would grow to %1.</source>
        <translation>
            <numerusform>After %n round in a row with that memory the model would grow to %1.</numerusform>
            <numerusform>After %n rounds in a row with that memory the model would grow to %1.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>After %n round(s) in a row with that memory the model would shrink.</source>
        <translation>
            <numerusform>After %n round in a row with that memory the model would shrink.</numerusform>
            <numerusform>After %n rounds in a row with that memory the model would shrink.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Part %1 would have %n computer(s) left, and one with part %2 would move to it.</source>
        <translation>
            <numerusform>Part %1 would have %n computer left, and one with part %2 would move to it.</numerusform>
            <numerusform>Part %1 would have %n computers left, and one with part %2 would move to it.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Part %1 would have %n computer(s) left, all of one owner.</source>
        <translation>
            <numerusform>Part %1 would have %n computer left, of one owner.</numerusform>
            <numerusform>Part %1 would have %n computers left, all of one owner.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Part %1 would have %n computer(s) left.</source>
        <translation>
            <numerusform>Part %1 would have %n computer left.</numerusform>
            <numerusform>Part %1 would have %n computers left.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>If it vanished without a word, %n vote(s) would be missing, and the network would stand still until it is back.</source>
        <translation>
            <numerusform>If it vanished without a word, %n vote would be missing, and the network would stand still until it is back.</numerusform>
            <numerusform>If it vanished without a word, %n votes would be missing, and the network would stand still until it is back.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>neuroshard::ui::WorkPanel</name>
    <message numerus="yes">
        <source>%1 (%n more to do)</source>
        <translation>
            <numerusform>%1 (%n more to do)</numerusform>
            <numerusform>%1 (%n more to do)</numerusform>
        </translation>
    </message>
</context>
</TS>

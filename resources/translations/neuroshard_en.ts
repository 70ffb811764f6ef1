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
        <source>of %n wallet(s)</source>
        <translation>
            <numerusform>of %n wallet</numerusform>
            <numerusform>of %n wallets</numerusform>
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
